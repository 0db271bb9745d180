// One scripted agent per thing that the tests look at; the id says which.

import { Agent } from '@mastra/core/agent';
import { MockMemory } from '@mastra/core/memory';
import { InMemoryStore } from '@mastra/core/storage';
import { finish, pause, pieces, providerError, reasoning, scriptedModel, text, toolCall } from './models.mjs';
import * as tools from './tools.mjs';

function agent(id, script, { model: modelOptions, ...config } = {}) {
  return new Agent({
    id,
    name: id,
    description: `Scripted agent: ${id}`,
    instructions: `You are ${id}.`,
    model: scriptedModel(`model-${id}`, script, modelOptions),
    // A scripted failure fails the same way again: retries would only cost time.
    maxRetries: 0,
    ...config,
  });
}

const memory = () => new MockMemory({ storage: new InMemoryStore() });

// ---- text ----------------------------------------------------------------------------------------

const plain = agent('text', function* () {
  yield* text('t1', ['Hello ', 'from ', 'Mastra', '.']);
});

// Streams the user's message back, 5 characters a delta: any text, or any JSON for structured output.
const echo = agent('echo', function* ({ user }) {
  yield* text('t1', pieces(user, 5));
});

const extras = agent(
  'text-extras',
  function* () {
    yield { type: 'source', sourceType: 'url', id: 'src_1', url: 'https://example.com/a', title: 'Page A' };
    yield { type: 'file', mediaType: 'text/plain', data: 'aGVsbG8=' };
    yield* text('t1', ['See ', 'the page.']);
    yield finish(
      'stop',
      { inputTokens: 11, outputTokens: 7, totalTokens: 18, reasoningTokens: 2, cachedInputTokens: 3 },
      { scripted: { cacheHit: true } },
    );
  },
  { model: { warnings: [{ type: 'other', message: 'scripted warning' }] } },
);

const unicode = agent('unicode', function* () {
  // The emoji is split into its two surrogates; the rest would break a parser that splits the
  // decoded JSON instead of the wire, or that takes U+2028, U+0085 or U+001E for a line end.
  yield* text('t1', ['\ud83d', '\ude00', ' \u2028 \u0085 \u001e ', '\n\ndata: [DONE]\n\n', 'Grüße, 世界', '\r\n']);
});

const many = agent('many-deltas', function* () {
  yield* text(
    't1',
    Array.from({ length: 2000 }, (_, n) => `${n} `),
  );
});

const slow = agent('slow', async function* ({ abortSignal }) {
  yield { type: 'text-start', id: 't1' };
  for (let n = 0; n < 500; n += 1) {
    yield { type: 'text-delta', id: 't1', delta: `tick ${n} ` };
    await pause(20, abortSignal);
  }
  yield { type: 'text-end', id: 't1' };
});

const thinker = agent('reasoning', function* () {
  yield* reasoning('r1', ['First ', 'I think.'], 'sig-1');
  yield* reasoning('r2', ['Then ', 'again.'], 'sig-2');
  yield* text('t1', ['The answer ', 'is 42.']);
});

// ---- structured output ---------------------------------------------------------------------------

const json = (id, value) =>
  agent(id, function* () {
    yield* text('t1', pieces(JSON.stringify(value), 4));
  });

const object = json('object', { name: 'Ada', age: 36, tags: ['math', 'engines'] });
const array = json('array', { elements: [{ id: 1, name: 'one' }, { id: 2, name: 'two' }, { id: 3, name: 'three' }] });
const choice = json('enum', { result: 'sunny' });
const objectInvalid = json('object-invalid', { name: 42 });

// ---- failures ------------------------------------------------------------------------------------

const errorMidStream = agent('error-mid-stream', function* () {
  yield { type: 'text-start', id: 't1' };
  yield { type: 'text-delta', id: 't1', delta: 'Before ' };
  yield { type: 'error', error: providerError('Overloaded', 529) };
});

const errorThrows = agent('error-throws', function* () {
  throw providerError('Invalid API key', 401);
});

const tripwire = agent(
  'tripwire',
  function* () {
    yield* text('t1', ['never seen']);
  },
  {
    inputProcessors: [
      {
        id: 'gatekeeper',
        processInput({ abort }) {
          abort('Blocked by gatekeeper', { metadata: { rule: 'all' } });
        },
      },
    ],
  },
);

const tripwireOutput = agent(
  'tripwire-output',
  function* () {
    yield* text('t1', ['fine ', 'still fine ', 'secret ', 'after']);
  },
  {
    outputProcessors: [
      {
        id: 'censor',
        async processOutputStream({ part, abort }) {
          if (part.type === 'text-delta' && part.payload.text.includes('secret')) abort('Blocked by censor');
          return part;
        },
      },
    ],
  },
);

// ---- tools ---------------------------------------------------------------------------------------

// Step 1: two parallel calls. Step 2: one call. Step 3: text.
const multiStep = agent(
  'tools',
  function* ({ results }) {
    if (results.length === 0) {
      yield* text('t1', ['Let me ', 'look. ']);
      yield* toolCall('call_1', 'weather', { city: 'Oslo' });
      yield* toolCall('call_2', 'clock', { city: 'Oslo' });
    } else if (results.length === 2) {
      yield* toolCall('call_3', 'weather', { city: 'Rome' });
    } else {
      yield* text('t2', ['It is 09:30 in Oslo, ', 'and 21.5 ', 'everywhere.']);
    }
  },
  { tools: { weather: tools.weather, clock: tools.clock } },
);

const toolError = agent(
  'tool-error',
  function* ({ results }) {
    if (results.length === 0) yield* toolCall('call_1', 'fragile', { input: 'glass' });
    else yield* text('t1', ['The tool ', 'failed.']);
  },
  { tools: { fragile: tools.fragile } },
);

const approval = agent(
  'approval',
  function* ({ results }) {
    if (results.length === 0) yield* toolCall('call_1', 'wireMoney', { amount: 100 });
    else yield* text('t1', ['Tool said: ', quote(results[0])]);
  },
  { tools: { wireMoney: tools.wireMoney } },
);

const suspend = agent(
  'suspend',
  function* ({ results }) {
    if (results.length === 0) yield* toolCall('call_1', 'askHuman', { question: 'Really?' });
    else yield* text('t1', ['Human said: ', quote(results[0])]);
  },
  { tools: { askHuman: tools.askHuman } },
);

// Calls every tool that the request offers, then quotes the results and how many user messages it
// was shown: a client that loses the prompt when it posts a tool result is told on.
const clientTools = agent(
  'client-tools',
  function* ({ tools: offered, results, userCount, user }) {
    if (results.length === 0 && offered.length > 0) {
      for (const [n, name] of offered.entries()) yield* toolCall(`call_${n + 1}`, name, { title: `Title ${n + 1}` });
    } else {
      const quoted = results.map(quote).join(', ');
      yield* text('t1', [`Results: ${quoted}. `, `User messages: ${userCount}. `, `Last: ${user}`]);
    }
  },
  { memory: memory() },
);

const nested = agent(
  'nested',
  function* ({ results }) {
    if (results.length === 0) yield* toolCall('call_1', 'agent-helper', { prompt: 'help me' });
    else yield* text('t1', ['Helper said: ', quote(results[0])]);
  },
  {
    agents: {
      helper: agent('helper', function* () {
        yield* text('h1', ['I ', 'help.']);
      }),
    },
  },
);

// ---- background tasks ----------------------------------------------------------------------------
// Give them memory in the request: {"memory": {"thread": T, "resource": R}}, with a fresh T for each run.

// Turn 1 starts every tool of the agent and says so; a later turn, to which a system text tells what
// became of the tasks, names the calls it heard of.
const backgroundAgent = (id, background) =>
  agent(
    id,
    function* ({ results, system }) {
      const heard = [...new Set(system.match(/call_\d+/g))];
      if (heard.length > 0) {
        yield* text('t2', ['Heard of ', heard.join(' and '), '.']);
      } else if (results.length === 0) {
        for (const [n, name] of Object.keys(background).entries()) {
          yield* toolCall(`call_${n + 1}`, name, { topic: `topic ${n + 1}` });
        }
      } else {
        yield* text('t1', ['Started', '.']);
      }
    },
    { tools: background, memory: memory() },
  );

const backgroundTwo = backgroundAgent('background', { research: tools.research, archive: tools.archive });
const backgroundFail = backgroundAgent('background-fail', { doomed: tools.doomed });
const backgroundSuspend = backgroundAgent('background-suspend', { confirm: tools.confirm });
// `dig` keeps the stream open for a second, so that `confirm` can be resumed meanwhile.
const backgroundSuspendOpen = backgroundAgent('background-suspend-open', { confirm: tools.confirm, dig: tools.dig });

// Suspends in the foreground first; its resumed turn starts a background task.
const suspendThenBackground = agent(
  'suspend-then-background',
  function* ({ results, system }) {
    if (system.includes('call_2')) yield* text('t2', ['Heard of ', 'call_2', '.']);
    else if (results.length === 0) yield* toolCall('call_1', 'askHuman', { question: 'Shall I?' });
    else if (results.length === 1) yield* toolCall('call_2', 'research', { topic: 'topic' });
    else yield* text('t1', ['Started', '.']);
  },
  { tools: { askHuman: tools.askHuman, research: tools.research }, memory: memory() },
);

// ---- network -------------------------------------------------------------------------------------

const researcher = agent('researcher', function* () {
  yield* text('r1', ['Sub ', 'facts']);
});

// The same model routes and judges; the schema that is asked for tells which.
const network = agent(
  'network',
  function* ({ schema }) {
    const keys = Object.keys(schema?.properties ?? {});
    if (keys.includes('primitiveId')) {
      const route = {
        primitiveId: 'researcher',
        primitiveType: 'agent',
        prompt: 'find facts',
        selectionReason: 'Needs research',
      };
      yield* text('t1', pieces(JSON.stringify(route), 12));
    } else if (keys.includes('isComplete')) {
      const verdict = { isComplete: true, completionReason: 'All done', finalResult: 'Network answer' };
      yield* text('t1', pieces(JSON.stringify(verdict), 12));
    } else {
      yield* text('t1', ['Not routed.']);
    }
  },
  { agents: { researcher }, memory: memory() },
);

// ---- durable -------------------------------------------------------------------------------------

// By default the events of a run are kept for 30 seconds only.
const keptDurable = { cleanupTimeoutMs: 10 * 60_000 };

const durable = agent(
  'durable',
  function* () {
    yield* text('t1', ['Durable ', 'hello', '.']);
  },
  { durable: keptDurable },
);

// Two seconds: long enough to leave it and to come back with an offset.
const durableSlow = agent(
  'durable-slow',
  async function* ({ abortSignal }) {
    yield { type: 'text-start', id: 't1' };
    for (let n = 0; n < 40; n += 1) {
      yield { type: 'text-delta', id: 't1', delta: `d${n} ` };
      await pause(50, abortSignal);
    }
    yield { type: 'text-end', id: 't1' };
  },
  { durable: keptDurable },
);

const durableTools = agent(
  'durable-tools',
  function* ({ results }) {
    if (results.length === 0) yield* toolCall('call_1', 'weather', { city: 'Oslo' });
    else yield* text('t1', ['Done: ', quote(results[0])]);
  },
  { tools: { weather: tools.weather }, durable: keptDurable },
);

const durableApproval = agent(
  'durable-approval',
  function* ({ results }) {
    if (results.length === 0) yield* toolCall('call_1', 'wireMoney', { amount: 100 });
    else yield* text('t1', ['Tool said: ', quote(results[0])]);
  },
  { tools: { wireMoney: tools.wireMoney }, durable: keptDurable },
);

function quote(result) {
  return JSON.stringify(result.output?.value ?? result.output);
}

const all = [
  plain,
  echo,
  extras,
  unicode,
  many,
  slow,
  thinker,
  object,
  array,
  choice,
  objectInvalid,
  errorMidStream,
  errorThrows,
  tripwire,
  tripwireOutput,
  multiStep,
  toolError,
  approval,
  suspend,
  clientTools,
  nested,
  backgroundTwo,
  backgroundFail,
  backgroundSuspend,
  backgroundSuspendOpen,
  suspendThenBackground,
  researcher,
  network,
  durable,
  durableSlow,
  durableTools,
  durableApproval,
];

export const agents = Object.fromEntries(all.map(one => [one.id, one]));
