import type { Bench, BenchContext } from '../../bench.ts';
import { startLoadGenerator } from '../../load/load-generator.ts';
import { atMost, figure } from '../../report.ts';
import { watchPeaks } from '../../stage/peaks.ts';
import { paymentListRows } from './lists.ts';
import { makingRows } from './making.ts';
import { notificationRows } from './notifications.ts';
import { startPaying } from './paying.ts';
import { renewalRows } from './renewals.ts';
import { steadyRows } from './steady.ts';

const SHORT_MINUTES = 1;
const MOST_MIB = 180;

/** One replica that makes payments at the sandbox, hears of them, renews subscriptions, and lists them. */
export const payment: Bench = {
  name: 'payment',
  measures: 'payments at the sandbox against bare transactions, notifications, renewals, memory, lists of 1,000,000',
  async run({ stage, minutes = SHORT_MINUTES, log }: BenchContext) {
    await using stack = new AsyncDisposableStack();
    const paying = await startPaying(stack, stage);
    using generator = startLoadGenerator();
    const loaded = { generator, log };
    const peaks = watchPeaks([paying.service]);
    const rows = [
      ...(await makingRows(paying, loaded)),
      ...(await notificationRows(paying, loaded)),
      ...(await steadyRows(paying, { ...loaded, minutes })),
      ...(await renewalRows(paying, log)),
      ...(await paymentListRows(paying, loaded)),
    ];
    const [peak = Number.NaN] = await peaks.stop();
    await paying.service.stop();
    return [...rows, atMost(MOST_MIB, figure('highest memory of all', peak, 'MiB'))];
  },
};
