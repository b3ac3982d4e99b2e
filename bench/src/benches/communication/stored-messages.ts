import { randomUUID } from 'node:crypto';
import { createBlindIndex, createVault } from '@rollcall/platform/vault.ts';
import type { Messaging } from './messaging.ts';

/** Who has three quarters of all messages; the rest is of a thousand others. */
export const LARGE_SUBJECT = 'large';
export const SMALL_SUBJECT = 'small-1';
/** So many people get them. */
export const RECIPIENTS = 50_000;
const BATCH = 10_000;

export function recipientOf(number: number): string {
  return `buyer-${String(number % RECIPIENTS).padStart(5, '0')}@example.com`;
}

/** Fills the table with messages of the last month that are over. The vault seals each for its id. */
export async function storeMessages({ tables, keys }: Messaging, count: number): Promise<void> {
  const vault = createVault(keys);
  const index = createBlindIndex(keys, 'recipient');
  const indexes = Array.from({ length: RECIPIENTS }, (_, number) => index.of(recipientOf(number)));
  for (let first = 0; first < count; first += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, count - first) }, (_, each) => first + each);
    const ids = numbers.map(() => randomUUID());
    const envelopes = numbers.map((number, place) => {
      const envelope = { to: recipientOf(number), from: 'shop@shop.example', metadata: { order: String(number) } };
      return vault.seal(JSON.stringify(envelope), `message envelope ${ids[place]}`);
    });
    const recipients = numbers.map((number) => indexes[number % RECIPIENTS]);
    await tables.query(STORE, [numbers, ids, recipients, envelopes, count]);
  }
  await tables.query(
    'INSERT INTO message_tags SELECT subject, unnest(tags), created_at, id FROM messages ON CONFLICT DO NOTHING',
  );
  await tables.query('VACUUM ANALYZE messages, message_tags');
}

const STORE = `
  INSERT INTO messages (id, subject, channel, state, category, template, template_version, locale, tags, recipient,
    envelope, provider, attempts, expires_at, sent_at, created_at)
  SELECT id, CASE WHEN n % 4 = 0 THEN 'small-' || n / 4 % 1000 ELSE '${LARGE_SUBJECT}' END,
    CASE WHEN n % 10 < 7 THEN 'email' WHEN n % 10 < 9 THEN 'sms' ELSE 'push' END,
    CASE WHEN n % 1009 < 2 THEN 'unknown' WHEN n % 1009 < 10 THEN 'failed' WHEN n % 1009 < 60 THEN 'bounced'
      WHEN n % 1009 < 300 THEN 'delivered' ELSE 'sent' END,
    CASE WHEN n % 3 = 0 THEN 'marketing' ELSE 'transactional' END,
    CASE WHEN n % 2 = 0 THEN 'template-' || n % 50 END, CASE WHEN n % 2 = 0 THEN 1 END, CASE WHEN n % 2 = 0 THEN 'en' END,
    ARRAY['campaign-' || n % 211, CASE WHEN n % 17 = 0 THEN 'trial' ELSE 'live' END], recipient, envelope, 'mailpit', 1,
    made + interval '1 day', made + interval '2 seconds', made
  FROM unnest($1::int[], $2::uuid[], $3::bytea[], $4::bytea[]) AS stored (n, id, recipient, envelope),
    LATERAL (SELECT now() - (n + 1) * (interval '30 days' / $5::int) AS made) AS time`;
