// Scripted language models (AI SDK V2): no key, no network, the same answer every time.
//
// A script is a generator that looks at one model call and yields stream parts; the helpers below
// write the part sequences that a provider would send. Everything a script may decide on is in `call`.

import { setTimeout as sleep } from 'node:timers/promises';
import { noteAbort } from './aborts.mjs';

export const EPOCH = new Date('2026-01-15T09:30:00.000Z');

/**
 * A language model that plays `script(call)`.
 *
 * call = {
 *   prompt,        the AI SDK prompt (list of messages)
 *   user,          text of the last user message
 *   userCount,     how many user messages the prompt has
 *   system,        all system texts joined
 *   results,       tool results that came after the last user message: [{toolCallId, toolName, output}]
 *   tools,         names of the tools offered
 *   schema,        JSON schema of the structured output that was asked for, or undefined
 *   raw,           whether raw provider chunks were asked for
 *   abortSignal,
 * }
 */
export function scriptedModel(name, script, { warnings } = {}) {
  const open = options => play(name, script, describeCall(options));
  return {
    specificationVersion: 'v2',
    provider: 'scripted',
    modelId: name,
    supportedUrls: {},
    async doStream(options) {
      const parts = open(options);
      // A script that throws before its first part is a provider that refuses the call.
      const first = await parts.next();
      return {
        stream: streamOf(first, parts),
        request: { body: JSON.stringify({ model: name, stream: true }) },
        response: { headers: { 'x-scripted': name } },
        warnings: warnings ?? [],
      };
    },
    async doGenerate(options) {
      return { ...(await collect(open(options))), warnings: warnings ?? [] };
    },
  };
}

// ---- parts ---------------------------------------------------------------------------------------

/** A text block: one text-delta for each of `deltas`. */
export function* text(id, deltas) {
  yield { type: 'text-start', id };
  for (const delta of deltas) yield { type: 'text-delta', id, delta };
  yield { type: 'text-end', id };
}

/** A reasoning block, signed like Anthropic's: the signature comes with reasoning-end. */
export function* reasoning(id, deltas, signature) {
  yield { type: 'reasoning-start', id };
  for (const delta of deltas) yield { type: 'reasoning-delta', id, delta };
  yield { type: 'reasoning-end', id, providerMetadata: { scripted: { signature } } };
}

/** A tool call whose arguments are streamed in three deltas before the call itself. */
export function* toolCall(toolCallId, toolName, args) {
  const input = JSON.stringify(args);
  const cut = Math.ceil(input.length / 3);
  yield { type: 'tool-input-start', id: toolCallId, toolName };
  for (let at = 0; at < input.length; at += cut) {
    yield { type: 'tool-input-delta', id: toolCallId, delta: input.slice(at, at + cut) };
  }
  yield { type: 'tool-input-end', id: toolCallId };
  yield { type: 'tool-call', toolCallId, toolName, input };
}

/** A finish part. Scripts only yield it to override what `play` would add by itself. */
export const finish = (finishReason, usage, providerMetadata) => ({
  type: 'finish',
  finishReason,
  usage,
  ...(providerMetadata && { providerMetadata }),
});

/** `size` characters (UTF-16 units) per piece. */
export function pieces(string, size) {
  const out = [];
  for (let at = 0; at < string.length; at += size) out.push(string.slice(at, at + size));
  return out;
}

/** An error as a provider's SDK raises it, with the fields that Mastra passes on. */
export function providerError(message, statusCode) {
  return Object.assign(new Error(message), {
    name: 'AI_APICallError',
    statusCode,
    isRetryable: false,
    data: { type: 'error', error: { type: 'scripted_error', message } },
  });
}

// ---- the player ----------------------------------------------------------------------------------

async function* play(name, script, call) {
  const { abortSignal } = call;
  let deltas = 0;
  const onAbort = () => noteAbort({ model: name, user: call.user, deltas, reason: abortSignal.reason });
  abortSignal?.addEventListener('abort', onAbort, { once: true });
  try {
    const parts = script(call);
    const first = await parts.next();
    yield { type: 'stream-start', warnings: [] };
    yield { type: 'response-metadata', id: `resp_${call.results.length + 1}`, modelId: name, timestamp: EPOCH };
    let reason = 'stop';
    for (let step = first; !step.done; step = await parts.next()) {
      const part = step.value;
      if (call.raw && part.type.endsWith('-delta')) yield { type: 'raw', rawValue: { scripted: part } };
      yield part;
      if (part.type.endsWith('-delta')) deltas += 1;
      if (part.type === 'tool-call') reason = 'tool-calls';
      if (part.type === 'finish') return;
      if (part.type === 'error') return; // a broken provider stream has no finish
    }
    yield finish(reason, usage(call.prompt.length, deltas));
  } finally {
    abortSignal?.removeEventListener('abort', onAbort);
  }
}

// Differs from step to step, so that a wrong sum shows.
function usage(messages, deltas) {
  const inputTokens = 10 * messages;
  return { inputTokens, outputTokens: deltas, totalTokens: inputTokens + deltas };
}

function streamOf(first, parts) {
  let pending = first;
  return new ReadableStream({
    async pull(controller) {
      try {
        const step = pending ?? (await parts.next());
        pending = undefined;
        if (step.done) controller.close();
        else controller.enqueue(step.value);
      } catch (error) {
        controller.error(error);
      }
    },
    async cancel() {
      await parts.return();
    },
  });
}

async function collect(parts) {
  const content = [];
  let texts = '';
  let end = finish('unknown', usage(0, 0));
  for await (const part of parts) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'text-delta') texts += part.delta;
    if (part.type === 'tool-call' || part.type === 'source' || part.type === 'file') content.push(part);
    if (part.type === 'finish') end = part;
  }
  if (texts) content.unshift({ type: 'text', text: texts });
  return { content, finishReason: end.finishReason, usage: end.usage, providerMetadata: end.providerMetadata };
}

// ---- what a script sees --------------------------------------------------------------------------

function describeCall({ prompt, tools, responseFormat, includeRawChunks, abortSignal }) {
  const lastUser = prompt.findLastIndex(message => message.role === 'user');
  return {
    prompt,
    user: lastUser < 0 ? '' : textOf(prompt[lastUser]),
    // Mastra puts a user message "." before a conversation that starts with an assistant message.
    userCount: prompt.filter(message => message.role === 'user' && textOf(message) !== '.').length,
    system: prompt
      .filter(message => message.role === 'system')
      .map(textOf)
      .join('\n'),
    results: prompt
      .slice(lastUser + 1)
      .filter(message => message.role === 'tool')
      .flatMap(message => message.content)
      .filter(part => part.type === 'tool-result'),
    tools: (tools ?? []).map(tool => tool.name),
    schema: responseFormat?.type === 'json' ? responseFormat.schema : undefined,
    raw: Boolean(includeRawChunks),
    abortSignal,
  };
}

function textOf({ content }) {
  if (typeof content === 'string') return content;
  return content
    .filter(part => part.type === 'text')
    .map(part => part.text)
    .join('');
}

/** Waits, and throws the abort reason when the signal fires meanwhile, as fetch does. */
export function pause(ms, abortSignal) {
  return sleep(ms, undefined, abortSignal && { signal: abortSignal });
}
