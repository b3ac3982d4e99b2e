// The entry point of the image: `rollcall registry` and so on, the container's arguments being
// `registry` and so on.
import { constants } from 'node:os';
import { chooseProcess } from './processes.ts';

// The first process of a container ignores signals that it has no listener for: stopped while it
// still loads, it would stay for the whole grace period. As soon as the process that was chosen
// listens, ending is its business.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
  });
}

const choice = chooseProcess(process.argv.slice(2));
if (choice.start === undefined) {
  (choice.exitCode === 0 ? process.stdout : process.stderr).write(choice.text);
  process.exitCode = choice.exitCode;
} else {
  await choice.start();
}
