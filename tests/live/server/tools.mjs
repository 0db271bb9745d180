// The tools of the scripted agents. All answers depend on the arguments only.

import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import { pause } from './models.mjs';

export const weather = createTool({
  id: 'weather',
  description: 'Weather of a city',
  inputSchema: z.object({ city: z.string() }),
  outputSchema: z.object({ city: z.string(), tempC: z.number() }),
  execute: async ({ city }) => ({ city, tempC: 21.5 }),
});

export const clock = createTool({
  id: 'clock',
  description: 'Time in a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }, context) => {
    // A tool may write to the stream while it runs: `tool-output`, and `data-*` as it is.
    await context.writer?.write({ looking: city });
    await context.writer?.custom({ type: 'data-clock', data: { city } });
    return { city, time: '09:30' };
  },
});

export const fragile = createTool({
  id: 'fragile',
  description: 'Always throws',
  inputSchema: z.object({ input: z.string() }),
  execute: async ({ input }) => {
    throw new Error(`fragile broke on ${input}`);
  },
});

export const wireMoney = createTool({
  id: 'wireMoney',
  description: 'Needs an approval',
  inputSchema: z.object({ amount: z.number() }),
  requireApproval: true,
  execute: async ({ amount }) => ({ sent: amount }),
});

export const askHuman = createTool({
  id: 'askHuman',
  description: 'Suspends until it gets {answer}',
  inputSchema: z.object({ question: z.string() }),
  suspendSchema: z.object({ question: z.string() }),
  resumeSchema: z.object({ answer: z.string() }),
  execute: async ({ question }, context) => {
    const { resumeData, suspend } = context.agent;
    if (!resumeData) return suspend({ question });
    return { question, answer: resumeData.answer };
  },
});

const background = (id, description, execute) =>
  createTool({ id, description, inputSchema: z.object({ topic: z.string() }), background: { enabled: true }, execute });

export const research = background('research', 'Takes 80 ms, in the background', async ({ topic }, context) => {
  await pause(40);
  await context.writer?.write({ pct: 50 });
  await pause(40);
  return { topic, answer: 42 };
});

export const archive = background('archive', 'Takes 200 ms, in the background', async ({ topic }) => {
  await pause(200);
  return { topic, archived: true };
});

export const dig = background('dig', 'Takes a second, in the background', async ({ topic }) => {
  await pause(1000);
  return { topic, found: 'gold' };
});

export const doomed = background('doomed', 'Fails after 50 ms, in the background', async ({ topic }) => {
  await pause(50);
  throw new Error(`doomed failed on ${topic}`);
});

export const confirm = background('confirm', 'Suspends until {answer} comes', async (input, context) => {
  const { resumeData, suspend } = context.agent;
  if (!resumeData) return suspend({ confirm: input.topic });
  return { topic: input.topic, answer: resumeData.answer };
});
