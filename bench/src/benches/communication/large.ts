import { waitUntil } from '@rollcall/local/wait.ts';
import { atMost, figure, type Row } from '../../report.ts';
import { watchPeaks } from '../../stage/peaks.ts';
import { MAIL, type Messaging } from './messaging.ts';

const MAILS = 20;
const ATTACHED_BYTES = 10 * 2 ** 20;
const PER_SUBJECT = 4;
/** Of a pod. */
const MOST_MIB = 768;
const TIMEOUT_MS = 120_000;

/** Memory while mails come at once, each with as much attached as it may have. */
export async function largeMailRows(messaging: Messaging, log: (line: string) => void): Promise<Row[]> {
  const { service, tables } = messaging;
  log(`communication: ${MAILS} mails of 10 MiB at once`);
  const content = Buffer.alloc(ATTACHED_BYTES, 7).toString('base64');
  const attachments = [{ filename: 'papers.bin', contentType: 'application/octet-stream', content }];
  const body = JSON.stringify({ ...MAIL, to: 'large@example.com', attachments });
  const peaks = watchPeaks([service]);
  const statuses = await Promise.all(
    Array.from({ length: MAILS }, async (_, index) => {
      const { headers } = await messaging.callerOf(`large-${Math.floor(index / PER_SUBJECT)}`);
      const url = `http://127.0.0.1:${service.port}/api/v1/emails`;
      const type = { 'content-type': 'application/json' };
      const response = await fetch(url, { method: 'POST', headers: { ...headers, ...type }, body });
      await response.body?.cancel();
      return response.status;
    }),
  );
  const accepted = statuses.filter((status) => status === 202).length;
  const areSent = async (): Promise<boolean> => {
    const { rowCount } = await tables.query(`SELECT FROM messages WHERE subject LIKE 'large-%' AND state = 'sent'`, []);
    return rowCount === accepted;
  };
  await waitUntil('the large mails are sent', areSent, { timeoutMs: TIMEOUT_MS, failed: service.process.failed });
  const [peak = Number.NaN] = await peaks.stop();
  return [
    figure(`mails of 10 MiB that were accepted, of ${MAILS} at once`, accepted, ''),
    atMost(MOST_MIB, figure('highest memory meanwhile', peak, 'MiB')),
  ];
}
