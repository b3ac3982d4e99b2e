import type { TSchema } from 'typebox';
import type { ChannelDescription } from './channels/channel-source.ts';
import { clientMessages, type MessageKind, SUBPROTOCOL, serverMessages } from './protocol.ts';

export interface AsyncApiOptions {
  /** Of the gateway. */
  readonly version: string;
  /** Where it is served. */
  readonly path: string;
  readonly channels: readonly ChannelDescription[];
}

const reference = (path: string) => ({ $ref: `#/${path}` });

/** The AsyncAPI 3.0 document of the WebSocket endpoint, made from the schemas that its messages are checked by. */
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
      description:
        'One WebSocket connection follows any number of channels. The access token goes into the Authorization field of the upgrade ' +
        `request; browsers offer the subprotocols ${SUBPROTOCOL} and bearer.<token> instead. After a lost connection, subscribe with the ` +
        'id of the last event as cursor: what was missed follows, an event possibly twice.',
    },
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
