import { type Static, Type } from 'typebox';

const text = Type.String({ minLength: 1, maxLength: 8192 });
const url = (base: string) => Type.String({ minLength: 1, maxLength: 2048, default: base });

const quota = Type.Integer({ minimum: 1, maximum: 1_000_000_000 });

/** What each entry of the file of providers has. */
const common = {
  /** As the API and metrics show it, and notifications come to. */
  name: Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' }),
  /** Lower ones are tried first. */
  priority: Type.Integer({ minimum: 0, maximum: 65_535, default: 0 }),
  /** Its share among those of the same priority. */
  weight: Type.Number({ exclusiveMinimum: 0, maximum: 65_535, default: 1 }),
  /** Of each replica. */
  ratePerSecond: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 10_000 })),
  /** Most messages that all replicas give it in an hour, and in a day of UTC. */
  quotaPerHour: Type.Optional(quota),
  quotaPerDay: Type.Optional(quota),
  timeoutSeconds: Type.Number({ minimum: 0.1, maximum: 50, default: 10 }),
};

const senders = Type.Optional(
  Type.Array(text, {
    maxItems: 1000,
    description: 'Addresses that mail may be from, or @domain for all of one; that of `email.from` when absent',
  }),
);
const notificationToken = Type.String({ minLength: 16, maxLength: 256, pattern: '^[A-Za-z0-9_-]+$' });
const ttlSeconds = Type.Integer({ minimum: 0, maximum: 2_419_200, default: 86_400 });
const strict = { additionalProperties: false } as const;

/** The settings of an entry, by its kind. */
export const providerSchemas = {
  smtp: Type.Object(
    {
      ...common,
      kind: Type.Literal('smtp'),
      host: text,
      port: Type.Integer({ minimum: 1, maximum: 65_535, default: 587 }),
      tls: Type.Enum(['implicit', 'required', 'none'], { default: 'required' }),
      ca: Type.Optional(text),
      user: Type.Optional(text),
      password: Type.Optional(text),
      connections: Type.Integer({ minimum: 1, maximum: 100, default: 5 }),
      bounceDomain: text,
      notificationToken: Type.Optional(notificationToken),
      dkim: Type.Optional(Type.Object({ domain: text, selector: text, privateKey: text }, strict)),
      senders,
    },
    strict,
  ),
  sendgrid: Type.Object(
    {
      ...common,
      kind: Type.Literal('sendgrid'),
      baseUrl: url('https://api.sendgrid.com'),
      apiKey: text,
      notificationKey: Type.Optional(text),
      senders,
    },
    strict,
  ),
  twilio: Type.Object(
    {
      ...common,
      kind: Type.Literal('twilio'),
      baseUrl: url('https://api.twilio.com'),
      accountSid: Type.String({ pattern: '^AC[0-9a-fA-F]{32}$' }),
      authToken: text,
      sender: text,
    },
    strict,
  ),
  bulksms: Type.Object(
    {
      ...common,
      kind: Type.Literal('bulksms'),
      baseUrl: url('https://api.bulksms.com'),
      user: text,
      password: text,
      sender: Type.Optional(text),
      notificationToken,
    },
    strict,
  ),
  clickatell: Type.Object(
    {
      ...common,
      kind: Type.Literal('clickatell'),
      baseUrl: url('https://platform.clickatell.com'),
      apiKey: text,
      notificationToken,
    },
    strict,
  ),
  smpp: Type.Object(
    {
      ...common,
      kind: Type.Literal('smpp'),
      host: text,
      port: Type.Integer({ minimum: 1, maximum: 65_535, default: 2775 }),
      tls: Type.Boolean({ default: false }),
      ca: Type.Optional(text),
      systemId: Type.String({ minLength: 1, maxLength: 15 }),
      password: Type.String({ maxLength: 8 }),
      sender: Type.String({ pattern: '^[+A-Za-z0-9 ._-]{1,20}$' }),
      receiptIds: Type.Enum(['same', 'decimal'], { default: 'same' }),
    },
    strict,
  ),
  fcm: Type.Object(
    {
      ...common,
      kind: Type.Literal('fcm'),
      baseUrl: url('https://fcm.googleapis.com'),
      projectId: Type.String({ pattern: '^[a-z0-9-]{1,64}$' }),
      clientEmail: text,
      privateKey: text,
      tokenUri: url('https://oauth2.googleapis.com/token'),
    },
    strict,
  ),
  apns: Type.Object(
    {
      ...common,
      kind: Type.Literal('apns'),
      baseUrl: url('https://api.push.apple.com'),
      teamId: text,
      keyId: text,
      privateKey: text,
      topic: text,
      ttlSeconds,
    },
    strict,
  ),
  webpush: Type.Object(
    {
      ...common,
      kind: Type.Literal('webpush'),
      vapid: Type.Object({ subject: text, publicKey: text, privateKey: text }, strict),
      ttlSeconds,
    },
    strict,
  ),
} as const;

export type ProviderKind = keyof typeof providerSchemas;
export type ProviderSettings = { [Kind in ProviderKind]: Static<(typeof providerSchemas)[Kind]> }[ProviderKind];

/** Which kinds a channel may have. */
export const kindsOf = {
  email: ['smtp', 'sendgrid'],
  sms: ['twilio', 'bulksms', 'clickatell', 'smpp'],
  push: ['fcm', 'apns', 'webpush'],
} as const satisfies Readonly<Record<string, readonly ProviderKind[]>>;
