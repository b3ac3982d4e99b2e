import { readFile } from 'node:fs/promises';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';

const Port = Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 }));
const Text = Type.Optional(Type.String({ minLength: 1 }));
const Merchant = Type.Optional(Type.Object({ id: Type.String(), key: Type.String(), passphrase: Type.String() }));
const Webhook = Type.Optional(Type.Object({ url: Type.String(), secret: Type.String() }));

const STRICT = { additionalProperties: false } as const;

const schema = Type.Object(
  {
    twilio: Type.Optional(
      Type.Object({ port: Port, accountSid: Text, authToken: Text, webhookUrl: Type.Optional(Text) }, STRICT),
    ),
    payfast: Type.Optional(Type.Object({ port: Port, merchant: Merchant }, STRICT)),
    bulksms: Type.Optional(Type.Object({ port: Port, tokenId: Text, tokenSecret: Text, webhookUrl: Text }, STRICT)),
    clickatell: Type.Optional(Type.Object({ port: Port, apiKey: Text, callbackUrl: Text }, STRICT)),
    sendgrid: Type.Optional(Type.Object({ port: Port, apiKey: Text, privateKey: Text, eventWebhookUrl: Text }, STRICT)),
    yoco: Type.Optional(Type.Object({ port: Port, secretKey: Text, webhook: Webhook }, STRICT)),
    fcm: Type.Optional(Type.Object({ port: Port, projectId: Text, privateKey: Text }, STRICT)),
    stripe: Type.Optional(Type.Object({ port: Port, secretKey: Text, webhook: Webhook }, STRICT)),
  },
  STRICT,
);

/**
 * Of each simulator, what is not by default: where it listens, its credentials, and where its
 * notifications go. A simulator that is started again with them is the same to its clients.
 */
export type SimulatorSettings = Static<typeof schema>;

/** @throws Error where the file is not JSON, or something in it is not a setting. */
export async function readSettings(file: string): Promise<SimulatorSettings> {
  const settings: unknown = JSON.parse(await readFile(file, 'utf8'));
  if (Value.Check(schema, settings)) return settings;
  const [fault] = Value.Errors(schema, settings);
  throw new Error(`${file}: ${fault?.instancePath} ${fault?.message}`);
}
