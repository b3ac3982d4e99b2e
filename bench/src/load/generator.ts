// A process that makes load, so that making it costs no time of what is measured. It runs the tasks
// that its parent sends one after the other, and ends with its parent.
import { errorMessage } from '@rollcall/platform/errors.ts';
import { runGrpcLoad } from './grpc-load.ts';
import { runHttpLoad } from './http-load.ts';
import { runLeaseLoad } from './lease-load.ts';
import { runMailLoad } from './mail-load.ts';
import { runSubscribersLoad } from './subscribers-load.ts';
import type { LoadResult, Reply, Task } from './tasks.ts';
import { runTicksLoad } from './ticks-load.ts';
import { runTransactionLoad } from './transaction-load.ts';

function run(task: Task): Promise<LoadResult> {
  switch (task.kind) {
    case 'http':
      return runHttpLoad(task);
    case 'leases':
      return runLeaseLoad(task);
    case 'grpc':
      return runGrpcLoad(task);
    case 'subscribers':
      return runSubscribersLoad(task);
    case 'ticks':
      return runTicksLoad(task);
    case 'transactions':
      return runTransactionLoad(task);
    case 'mails':
      return runMailLoad(task);
    default:
      return task satisfies never;
  }
}

function reply(message: Reply): void {
  process.send?.(message);
}

process.on('message', (task: Task) => {
  run(task).then(
    (result) => reply({ result }),
    (error: unknown) => reply({ error: errorMessage(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
