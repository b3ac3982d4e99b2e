import { createTransport } from 'nodemailer';
import { runAtPace } from './pace.ts';
import type { LoadResult, MailTask } from './tasks.ts';

/** Runs a {@link MailTask}. A mail that was not taken counts as no answer. */
export async function runMailLoad({ smtpPort, mail, connections, pace }: MailTask): Promise<LoadResult> {
  const pool = createTransport({
    pool: true,
    host: '127.0.0.1',
    port: smtpPort,
    ignoreTLS: true,
    maxConnections: connections,
    maxMessages: Number.POSITIVE_INFINITY,
  });
  const send = async (): Promise<number | 'none'> => {
    try {
      await pool.sendMail(mail);
      return 200;
    } catch {
      return 'none';
    }
  };
  try {
    return await runAtPace(
      pace,
      Array.from({ length: connections }, () => send),
    );
  } finally {
    pool.close();
  }
}
