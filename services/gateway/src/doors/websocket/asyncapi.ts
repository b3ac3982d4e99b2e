import type { TSchema } from 'typebox';
import type { ChannelDescription } from './channels/channel-source.ts';
import { clientMessages, closeCodes, type MessageKind, SUBPROTOCOL, serverMessages } from './protocol.ts';

export interface AsyncApiOptions {
  /** Of the gateway. */
  readonly version: string;
  /** Where it is served. */
  readonly path: string;
  readonly channels: readonly ChannelDescription[];
}

const INTRODUCTION =
  'One WebSocket connection follows any number of channels. The access token goes into the Authorization field of the upgrade ' +
  `request; browsers offer the subprotocols ${SUBPROTOCOL} and bearer.<token> instead. After a lost connection, subscribe with the ` +
  'id of the last event as cursor: what was missed follows, an event possibly twice. The events that were missed have ids, which are ' +
  'good as cursors before `synced`, too; those of a list have none. Where it cannot be resumed from, reset comes ' +
  'first: drop the old cursor and all that was known. There is no new one before the event synced, so whoever is cut off in ' +
  'between subscribes without any: with the old one, which another replica may know, the rest of the list would be missed.';

/** What a client that gets one of them should do. */
const CLOSES: readonly (readonly [code: number, advice: string])[] = [
  [closeCodes.GOING_AWAY, 'this replica stops; connect again after the `retry_after_ms` of its goodbye'],
  [closeCodes.NOT_TEXT, 'a binary message came; messages are text. Mend the client'],
  [closeCodes.TOO_MANY_MESSAGES, 'too many messages, or one in too many pieces. Send less, then connect again'],
  [closeCodes.TOO_LONG, 'a message has more than `max_message_bytes`. Mend the client'],
  [closeCodes.INTERNAL, 'an error of the gateway; its log has it. Connect again later'],
  [
    closeCodes.TOO_SLOW,
    'too much waits to be read. Connect again with the cursors; read faster, or follow fewer channels',
  ],
  [
    closeCodes.TOKEN_ENDED,
    'the token has expired or was revoked. Get another one, then connect again with the cursors',
  ],
];

const REFUSALS: readonly (readonly [status: number, advice: string])[] = [
  [
    400,
    'the handshake is faulty, several tokens were sent, or of the subprotocols that are offered none is ours. Mend the client',
  ],
  [401, 'there is no token, or one that does not hold. Get another one'],
  [
    429,
    'the limit of requests is used up, or the subject has as many connections as it may have. Wait as `Retry-After` says',
  ],
  [
    503,
    'this replica stops or is full, or the keys of an issuer cannot be fetched. Try again, after `Retry-After` where there is one',
  ],
];

const DESCRIPTION = [
  INTRODUCTION,
  `An upgrade that is refused is answered in HTTP, with the gateway's error body:`,
  listOf(REFUSALS),
  'Scopes are checked when a channel is subscribed to: a missing one is answered with the message error, not with 403. ' +
    'A connection ends with one of these codes, or those of RFC 6455; one that ends without any was cut off, so connect again:',
  listOf(CLOSES),
].join('\n\n');

function listOf(entries: readonly (readonly [number, string])[]): string {
  return entries.map(([number, advice]) => `- \`${number}\`: ${advice}`).join('\n');
}

/** The gateway does not know its own address, and the specification has no relative one. */
function server(protocol: 'ws' | 'wss'): object {
  return {
    host: '{host}',
    protocol,
    variables: { host: { description: 'Host and port from which this document was fetched' } },
  };
}

const reference = (path: string) => ({ $ref: `#/${path}` });

/**
 * The AsyncAPI 3.0 document of the WebSocket endpoint, made from the schemas that its messages are
 * checked by.
 */
export function asyncApiDocument({ version, path, channels }: AsyncApiOptions): object {
  const events = channels.map((channel) => [eventName(channel), eventMessage(channel)] as const);
  const { event: _perChannel, ...answers } = serverMessages;
  const fromClient = messagesOf(clientMessages);
  const fromServer = [...messagesOf(answers), ...events];
  const all = [...fromClient, ...fromServer];
  const channel = reference('channels/gateway');
  const inChannel = (messages: readonly (readonly [string, object])[]) =>
    messages.map(([name]) => reference(`channels/gateway/messages/${name}`));
  const operation = { channel, security: [reference('components/securitySchemes/bearer')] };
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Rollcall gateway: live events',
      version,
      description: DESCRIPTION,
    },
    servers: { tls: server('wss'), plain: server('ws') },
    defaultContentType: 'application/json',
    channels: {
      gateway: {
        address: path,
        messages: Object.fromEntries(all.map(([name]) => [name, reference(`components/messages/${name}`)])),
        bindings: { ws: { method: 'GET', bindingVersion: '0.1.0' } },
      },
    },
    operations: {
      receive: { ...operation, action: 'receive', messages: inChannel(fromClient) },
      send: { ...operation, action: 'send', messages: inChannel(fromServer) },
    },
    components: {
      messages: Object.fromEntries(all),
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  };
}

function messagesOf(kinds: Readonly<Record<string, MessageKind>>): (readonly [string, object])[] {
  return Object.entries(kinds).map(([name, { summary, schema }]) => [name, { name, summary, payload: plain(schema) }]);
}

/** `event` with what its payload is in this channel. */
function eventMessage({ address, summary, scope, payload }: ChannelDescription): object {
  const { schema } = serverMessages.event;
  const channel = { type: 'string', description: address };
  return {
    name: 'event',
    summary: `Channel ${address}: ${summary}. Scope: ${scope}`,
    payload: plain({ ...schema, properties: { ...schema.properties, channel, payload } }),
  };
}

function eventName({ address }: ChannelDescription): string {
  return `event-${address.replaceAll(/[^a-z]+/g, '-').replace(/-$/, '')}`;
}

/** JSON Schema, without what TypeBox keeps in it for itself. */
function plain(schema: TSchema): object {
  return JSON.parse(JSON.stringify(schema));
}
