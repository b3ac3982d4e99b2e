import { badContent, badRequest, fcmError, type GoogleError } from './fcm-errors.ts';

const MOST_BYTES = 4096;
const MOST_TOPIC_BYTES = 2048;
const MOST_TTL_SECONDS = 4 * 7 * 24 * 3600;
const TARGETS = ['token', 'topic', 'condition', 'fid'] as const;
const RESERVED_KEY = /^(?:from|message_type|google\..*|gcm\..*)$/;
/** As devices get them: an instance, a colon, and a long secret. */
const TOKEN = /^[\w-]{8,}:[\w-]{20,}$|^[\w-]{32,}$/;

/** A message whose shape was checked. */
export type Message = Readonly<Record<string, unknown>>;

/** What is wrong with the content of a message, apart from who gets it. */
export function contentError(message: Message): GoogleError | undefined {
  const targets = TARGETS.filter((name) => message[name] !== undefined && message[name] !== '');
  if (targets.length !== 1) {
    const description =
      targets.length === 0 ? 'Recipient of the message is not set.' : 'Only one recipient can be set.';
    return badRequest([{ field: 'message', description }]);
  }
  const { token, topic } = message;
  const android = partOf(message, 'android');
  const reserved = [message, android]
    .flatMap((part) => Object.keys(partOf(part, 'data')))
    .find((key) => RESERVED_KEY.test(key));
  if (reserved !== undefined) {
    return badContent({ field: 'message.data', description: `Invalid data payload key: ${reserved}` });
  }
  if (typeof android['ttl'] === 'string' && Number.parseFloat(android['ttl']) > MOST_TTL_SECONDS) {
    return badContent({ field: 'message.android.ttl', description: 'The TTL is more than four weeks' });
  }
  // Told like a bad token, though the token is well.
  const most = topic === undefined ? MOST_BYTES : MOST_TOPIC_BYTES;
  if (androidBytes(message, android) > most) return fcmError('INVALID_ARGUMENT', 'Android message is too big');
  const apnsPayload = partOf(partOf(message, 'apns'), 'payload');
  if (bytesOf(apnsPayload) > most) return fcmError('INVALID_ARGUMENT', 'iOS message is too big');
  if (typeof topic === 'string' && !/^[\w.~%-]+$/.test(topic)) {
    return badContent({ field: 'message.topic', description: 'Malformed topic name' });
  }
  return typeof token === 'string' && !TOKEN.test(token) ? fcmError('INVALID_ARGUMENT') : undefined;
}

function androidBytes(message: Message, android: Message): number {
  const notification = { ...partOf(message, 'notification'), ...partOf(android, 'notification') };
  const data = android['data'] === undefined ? partOf(message, 'data') : partOf(android, 'data');
  return [...Object.entries(notification), ...Object.entries(data)]
    .map(
      ([name, value]) =>
        Buffer.byteLength(name) + (typeof value === 'string' ? Buffer.byteLength(value) : bytesOf(value)),
    )
    .reduce((sum, bytes) => sum + bytes, 0);
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function partOf(message: Message, name: string): Message {
  const part = message[name];
  return typeof part === 'object' && part !== null ? { ...part } : {};
}
