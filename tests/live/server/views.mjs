// What the server's own MastraModelOutput resolved to, run by run, for the tests to compare with.
//
// Each agent's stream methods are wrapped. The wrapper reads the output through a reader of its own
// (every access to `fullStream` gives an independent one), and touches the promises only after the
// end: a promise that is accessed during a failing run can hang the run itself.

import { encode } from './encode.mjs';

const PROMISES = [
  'text',
  'object',
  'reasoning',
  'reasoningText',
  'toolCalls',
  'toolResults',
  'usage',
  'totalUsage',
  'finishReason',
  'steps',
  'sources',
  'files',
  'warnings',
  'suspendPayload',
  'resumeSchema',
  'providerMetadata',
];

const PENDING_AFTER_MS = 500;
const NETWORK_WAIT_MS = 60_000;

// runId -> the promised views of its segments, in order. A run has a new segment each time it is
// resumed, and for each turn of an until-idle stream whose runId the client chose.
const runs = new Map();
// A network hands its runId on to the agents it calls, so its own views are kept apart.
const networks = new Map();

/** The views of a run, or undefined when it has not ended in time. The last segment if none is named. */
export async function viewsOf(runId, segment, waitMs) {
  const network = segment === undefined && networks.get(runId);
  const segments = network || (await waitFor(() => runs.get(runId), waitMs));
  if (!segments) return undefined;
  const view = await Promise.race([segments.at(segment ?? -1), later(waitMs)]);
  return view && { ...view, segments: segments.length };
}

export function recordViews(agent) {
  for (const method of ['stream', 'resumeStream']) {
    // streamUntilIdle, resumeStreamUntilIdle, approveToolCall and declineToolCall end up in these two.
    wrap(agent, method, (result, [, options]) => {
      // An until-idle result has one stream for one reader: its turns are recorded one by one instead.
      if (!options?.untilIdle) record(runs, result.runId, collectOutput(result.output ?? result));
    });
  }
  wrap(agent, 'network', result => record(networks, result.runId, collectNetwork(result)));
}

function wrap(agent, method, onResult) {
  const original = agent[method];
  agent[method] = async (...args) => {
    const result = await original.apply(agent, args);
    onResult(result, args);
    return result;
  };
}

function record(map, runId, view) {
  const safe = view.catch(error => encode({ runId, status: 'unreadable', error }));
  map.set(runId, [...(map.get(runId) ?? []), safe]);
}

async function collectOutput(output) {
  const chunkTypes = [];
  for await (const chunk of output.fullStream) chunkTypes.push(chunk.type);
  const promises = {};
  for (const name of PROMISES) promises[name] = await settle(output[name]);
  if (promises.steps.status === 'resolved') promises.steps.value = promises.steps.value.map(summary);
  return encode({
    runId: output.runId,
    status: output.status,
    error: output.error,
    tripwire: output.tripwire,
    usedFallbackValue: output.usedFallbackValue,
    chunkTypes,
    promises,
  });
}

// A network's result is itself the stream that the server sends: only its promises can be read.
async function collectNetwork(network) {
  const promises = {};
  for (const name of ['status', 'result', 'usage', 'object']) {
    promises[name] = await settle(network[name], NETWORK_WAIT_MS);
  }
  return encode({ runId: network.runId, status: promises.status.value, promises });
}

async function settle(promise, waitMs = PENDING_AFTER_MS) {
  const resolved = Promise.resolve(promise).then(
    value => ({ status: 'resolved', value }),
    error => ({ status: 'rejected', error }),
  );
  return (await Promise.race([resolved, later(waitMs)])) ?? { status: 'pending' };
}

const payloads = chunks => chunks.map(chunk => chunk.payload ?? chunk);

const summary = step => ({
  stepType: step.stepType,
  text: step.text,
  finishReason: step.finishReason,
  reasoningText: step.reasoningText,
  usage: step.usage,
  warnings: step.warnings,
  tripwire: step.tripwire,
  toolCalls: payloads(step.toolCalls),
  toolResults: payloads(step.toolResults),
});

const later = ms =>
  new Promise(resolve => {
    setTimeout(resolve, ms).unref();
  });

async function waitFor(get, waitMs) {
  const deadline = Date.now() + waitMs;
  while (!get() && Date.now() < deadline) await later(10);
  return get();
}
