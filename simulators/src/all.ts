import { startSendGrid } from './email/sendgrid.ts';
import { startPayfast } from './payfast.ts';
import { startFcm } from './push/fcm.ts';
import type { SimulatorSettings } from './settings.ts';
import type { Simulator, SimulatorOptions } from './simulator.ts';
import { startBulkSms } from './sms/bulksms.ts';
import { startClickatell } from './sms/clickatell.ts';
import { startTwilio } from './sms/twilio.ts';
import { startStripe } from './stripe.ts';
import { startYoco } from './yoco.ts';

type Start = (options: SimulatorOptions, settings: SimulatorSettings) => Promise<Simulator>;

/** In the order of their ports. A new one comes last, so that the others keep theirs. */
const SIMULATORS: readonly Start[] = [
  (options, { twilio }) => startTwilio({ ...options, ...twilio }),
  // With refunds, which its sandbox does not have.
  (options, { payfast }) => startPayfast({ ...options, mode: 'live', ...payfast }),
  (options, { bulksms }) => startBulkSms({ ...options, ...bulksms }),
  (options, { clickatell }) => startClickatell({ ...options, ...clickatell }),
  (options, { sendgrid }) => startSendGrid({ ...options, ...sendgrid }),
  (options, { yoco }) => startYoco({ ...options, ...yoco }),
  (options, { fcm }) => startFcm({ ...options, ...fcm }),
  (options, { stripe }) => startStripe({ ...options, ...stripe }),
];

/**
 * Starts every simulator, with the credentials it has by default where the settings have no others.
 *
 * @param firstPort of the first one, the others follow; 0: any that are free.
 */
export async function startAll(firstPort: number, settings: SimulatorSettings = {}): Promise<readonly Simulator[]> {
  await using started = new AsyncDisposableStack();
  const simulators: Simulator[] = [];
  for (const [index, start] of SIMULATORS.entries()) {
    const port = firstPort === 0 ? 0 : firstPort + index;
    simulators.push(started.use(await start({ port }, settings)));
  }
  // Stopped here only where one of them could not start.
  started.move();
  return simulators;
}
