import { startSendGrid } from './email/sendgrid.ts';
import { startPayfast } from './payfast.ts';
import { startFcm } from './push/fcm.ts';
import type { Simulator, SimulatorOptions } from './simulator.ts';
import { startBulkSms } from './sms/bulksms.ts';
import { startClickatell } from './sms/clickatell.ts';
import { startTwilio } from './sms/twilio.ts';
import { startStripe } from './stripe.ts';
import { startYoco } from './yoco.ts';

/** In the order of their ports. A new one comes last, so that the others keep theirs. */
const SIMULATORS: readonly ((options: SimulatorOptions) => Promise<Simulator>)[] = [
  startTwilio,
  // With refunds, which its sandbox does not have.
  (options) => startPayfast({ ...options, mode: 'live' }),
  startBulkSms,
  startClickatell,
  startSendGrid,
  startYoco,
  startFcm,
  startStripe,
];

/**
 * Starts every simulator, with the credentials it has by default.
 *
 * @param firstPort of the first one, the others follow; 0: any that are free.
 */
export async function startAll(firstPort: number): Promise<readonly Simulator[]> {
  await using started = new AsyncDisposableStack();
  const simulators: Simulator[] = [];
  for (const [index, start] of SIMULATORS.entries()) {
    simulators.push(started.use(await start({ port: firstPort === 0 ? 0 : firstPort + index })));
  }
  // Stopped here only where one of them could not start.
  started.move();
  return simulators;
}
