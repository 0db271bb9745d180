// One workflow per thing that the tests look at; the id says which.

import { createStep, createWorkflow } from '@mastra/core/workflows';
import { z } from 'zod';
import { agents } from './agents.mjs';

const number = z.object({ x: z.number() });

const double = createStep({
  id: 'double',
  inputSchema: number,
  outputSchema: number,
  execute: async ({ inputData }) => ({ x: inputData.x * 2 }),
});

const increment = createStep({
  id: 'increment',
  inputSchema: number,
  outputSchema: number,
  execute: async ({ inputData, writer }) => {
    await writer?.write({ progress: 'half way' });
    return { x: inputData.x + 1 };
  },
});

const twoSteps = createWorkflow({ id: 'two-steps', inputSchema: number, outputSchema: number })
  .then(double)
  .then(increment)
  .commit();

const askForAdd = createStep({
  id: 'ask-for-add',
  inputSchema: number,
  outputSchema: number,
  suspendSchema: z.object({ ask: z.string() }),
  resumeSchema: z.object({ add: z.number() }),
  execute: async ({ inputData, resumeData, suspend }) => {
    if (!resumeData) return suspend({ ask: 'How much to add?' });
    return { x: inputData.x + resumeData.add };
  },
});

const suspendResume = createWorkflow({ id: 'suspend-resume', inputSchema: number, outputSchema: number })
  .then(double)
  .then(askForAdd)
  .commit();

const explode = createStep({
  id: 'explode',
  inputSchema: number,
  outputSchema: number,
  execute: async () => {
    throw new Error('step exploded');
  },
});

const failing = createWorkflow({ id: 'failing', inputSchema: number, outputSchema: number })
  .then(double)
  .then(explode)
  .commit();

const toList = createStep({
  id: 'to-list',
  inputSchema: z.object({ double: number, increment: number }),
  outputSchema: z.array(number),
  execute: async ({ inputData }) => [inputData.double, inputData.increment, { x: 100 }],
});

const triple = createStep({
  id: 'triple',
  inputSchema: number,
  outputSchema: number,
  execute: async ({ inputData }) => ({ x: inputData.x * 3 }),
});

const parallelForeach = createWorkflow({ id: 'parallel-foreach', inputSchema: number, outputSchema: z.array(number) })
  .parallel([double, increment])
  .then(toList)
  .foreach(triple)
  .commit();

const prompt = z.object({ prompt: z.string() });

const answer = z.object({ text: z.string() });

const agentStep = createWorkflow({ id: 'agent-step', inputSchema: prompt, outputSchema: answer })
  .then(createStep(agents.text))
  .commit();

const all = [twoSteps, suspendResume, failing, parallelForeach, agentStep];

export const workflows = Object.fromEntries(all.map(one => [one.id, one]));
