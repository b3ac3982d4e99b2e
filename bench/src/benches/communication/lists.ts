import type { LoadGenerator } from '../../load/load-generator.ts';
import type { Row } from '../../report.ts';
import { cursorAt, type ListQuery, listRows } from '../../stage/list-latency.ts';
import type { Messaging } from './messaging.ts';
import { LARGE_SUBJECT, RECIPIENTS, recipientOf, SMALL_SUBJECT, storeMessages } from './stored-messages.ts';

const STORED = 1_000_000;
const DEEP = 500_000;

/** `GET /messages` by what it can be searched, with a million of them. */
export async function messageListRows(
  messaging: Messaging,
  { generator, log }: { readonly generator: LoadGenerator; readonly log: (line: string) => void },
): Promise<Row[]> {
  const { service, tables } = messaging;
  log('communication: storing a million messages');
  await storeMessages(messaging, STORED);
  log('communication: listing');
  const deep = await cursorAt(tables, { table: 'messages', where: `subject = '${LARGE_SUBJECT}'`, offset: DEEP });
  const large = await messaging.callerOf(LARGE_SUBJECT);
  const small = await messaging.callerOf(SMALL_SUBJECT);
  const admin = await messaging.callerOf('admin', 'messages:read messages:admin');
  const { rows } = await tables.query<{ id: string }>(
    `SELECT id FROM messages TABLESAMPLE SYSTEM (0.1) WHERE subject = $1 LIMIT 200`,
    [LARGE_SUBJECT],
  );
  const of = (name: string, caller: typeof large, queries: readonly string[]): ListQuery => ({
    name,
    paths: queries.map((query) => `/api/v1/messages${query}`),
    headers: caller.headers ?? {},
  });
  const people = Array.from({ length: 100 }, (_, number) => {
    const someone = recipientOf((number * 7919) % RECIPIENTS);
    return `to=${encodeURIComponent(someone)}`;
  });
  return listRows({ port: service.port, generator }, [
    of('first page', large, ['']),
    of('offset 10,000', large, ['?offset=10000']),
    of('deep cursor', large, [`?cursor=${deep}`]),
    of('by status, often', large, ['?status=sent']),
    of('by status, seldom', large, ['?status=failed', '?status=unknown']),
    of('by channel', large, ['?channel=push']),
    of(
      'by recipient',
      large,
      people.map((person) => `?${person}`),
    ),
    of('by tag, often', large, ['?tag=live']),
    of('by tag, seldom', large, ['?tag=campaign-7', '?tag=campaign-100']),
    of('by a tag that none has', large, ['?tag=none']),
    of('by template', large, ['?template=template-8', '?template=template-34']),
    of(
      'by recipient and status',
      large,
      people.map((person) => `?${person}&status=sent`),
    ),
    of('by tag and status', large, ['?tag=campaign-7&status=failed']),
    of('of a small subject', small, ['', '?status=failed', '?tag=live']),
    of('of all subjects', admin, ['']),
    of('of all subjects by status', admin, ['?status=failed']),
    of(
      'of all subjects by recipient',
      admin,
      people.map((person) => `?${person}`),
    ),
    of(
      'one message',
      large,
      rows.map(({ id }) => `/${id}`),
    ),
  ]);
}
