// Every abort that reached a scripted model in the middle of its stream, oldest first.

const aborts = [];

export function noteAbort({ model, user, deltas, reason }) {
  aborts.push({ model, user, deltas, reason: String(reason?.message ?? reason), at: new Date().toISOString() });
}

export const listAborts = () => aborts;
