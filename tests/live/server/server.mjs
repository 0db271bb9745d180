// A real Mastra server with scripted models, for the live tests. It needs no API key and no network.
//
//   npm ci
//   node server.mjs --port 0        (0, the default: any free port)
//
// It listens on 127.0.0.1, prints one line {"port": N} on stdout, logs to stderr, and exits when its
// stdin closes, so that it never outlives the tests that started it.
//
//   /api/...                          the Mastra API (agents.mjs and workflows.mjs list what is there)
//   GET  /_test/views/RUN_ID          what the run's own MastraModelOutput resolved to; waits up to 5 s.
//                                     A resumed run has several segments: ?segment=0 is the first,
//                                     the last is the default
//   GET  /_test/aborts                the aborts that reached a model: [{model, user, deltas, reason, at}]
//   POST /_test/background-tasks/TASK_ID/resume {resumeData}
//                                     resumes a suspended background task (the Mastra API has no route)

import { parseArgs } from 'node:util';
import { serve } from '@hono/node-server';
import { Mastra } from '@mastra/core/mastra';
import { ConsoleLogger } from '@mastra/core/logger';
import { InMemoryStore } from '@mastra/core/storage';
import { MastraServer } from '@mastra/hono';
import { Hono } from 'hono';
import { listAborts } from './aborts.mjs';
import { agents } from './agents.mjs';
import { recordViews, viewsOf } from './views.mjs';
import { workflows } from './workflows.mjs';

const VIEW_WAIT_MS = 5000;

const { values: options } = parseArgs({ options: { port: { type: 'string', default: '0' } } });

// The tests need no network, and Mastra's usage statistics are sent over it.
process.env.MASTRA_TELEMETRY_DISABLED = '1';

// stdout is for the port line only.
console.log = console.info = console.debug = console.error;

const mastra = new Mastra({
  agents,
  workflows,
  storage: new InMemoryStore(),
  backgroundTasks: { enabled: true },
  logger: new ConsoleLogger({ level: 'error' }),
});

for (const agent of Object.values(mastra.listAgents())) {
  recordViews(agent);
  // Sub-agents that are not registered themselves.
  for (const helper of Object.values(await agent.listAgents())) {
    if (!(helper.id in agents)) recordViews(helper);
  }
}

const app = new Hono();

app.get('/_test/views/:runId', async context => {
  const segment = context.req.query('segment');
  const view = await viewsOf(context.req.param('runId'), segment && Number(segment), VIEW_WAIT_MS);
  return view ? context.json(view) : context.json({ error: 'no such run, or not ended' }, 404);
});

app.get('/_test/aborts', context => context.json(listAborts()));

app.post('/_test/background-tasks/:taskId/resume', async context => {
  const { resumeData } = await context.req.json();
  const task = await mastra.backgroundTaskManager.resume(context.req.param('taskId'), resumeData);
  return context.json(task);
});

await new MastraServer({ app, mastra }).init();

const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(options.port) }, ({ port }) => {
  process.stdout.write(`${JSON.stringify({ port })}\n`);
});
server.on('error', error => {
  console.error(error);
  process.exit(1);
});

process.stdin.on('close', () => process.exit(0)).resume();
