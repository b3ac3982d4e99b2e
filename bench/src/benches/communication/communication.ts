import { smallHeap } from '@rollcall/local/runtime.ts';
import type { Bench, BenchContext } from '../../bench.ts';
import { startLoadGenerator } from '../../load/load-generator.ts';
import { atMost, figure } from '../../report.ts';
import { watchPeaks } from '../../stage/peaks.ts';
import { acceptanceRows } from './acceptance.ts';
import { drainRows } from './drain.ts';
import { largeMailRows } from './large.ts';
import { messageListRows } from './lists.ts';
import { startMessaging } from './messaging.ts';
import { steadyRows } from './steady.ts';

const SHORT_MINUTES = 1;
const MOST_MIB = 180;

/** One replica that accepts mails, sends them to Mailpit, and lists them. */
export const communication: Bench = {
  name: 'communication',
  measures: 'accepting and sending mails against bare INSERTs and a bare pool, memory, lists of 1,000,000 messages',
  async run({ stage, minutes = SHORT_MINUTES, log }: BenchContext) {
    await using stack = new AsyncDisposableStack();
    const messaging = await startMessaging(stack, { stage, log });
    using generator = startLoadGenerator();
    using mailer = startLoadGenerator(smallHeap);
    const loaded = { generator, log };
    const peaks = watchPeaks([messaging.service]);
    const rows = [
      ...(await acceptanceRows(messaging, loaded)),
      ...(await drainRows(messaging, { ...loaded, mailer })),
      ...(await steadyRows(messaging, { ...loaded, minutes })),
      ...(await messageListRows(messaging, loaded)),
    ];
    const [peak = Number.NaN] = await peaks.stop();
    rows.push(atMost(MOST_MIB, figure('highest memory of all so far', peak, 'MiB')));
    rows.push(...(await largeMailRows(messaging, log)));
    await messaging.service.stop();
    return rows;
  },
};
