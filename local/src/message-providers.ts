import { createPublicKey } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import type { PlannedSimulators } from './simulators.ts';

interface MessageProvidersOptions {
  readonly simulators: PlannedSimulators;
  /** Of Mailpit, on 127.0.0.1; undefined: mail goes to a simulator. */
  readonly smtpPort: number | undefined;
}

/** Writes the providers of communication: the mail server that is read at its page, and simulators. */
export async function writeMessageProviders(file: string, options: MessageProvidersOptions): Promise<void> {
  const { simulators, smtpPort } = options;
  const { urls, settings, notificationToken } = simulators;
  const { twilio, bulksms, clickatell, sendgrid, fcm } = settings;
  const mailpit = {
    name: 'mailpit',
    kind: 'smtp',
    host: '127.0.0.1',
    port: smtpPort,
    tls: 'none',
    bounceDomain: 'rollcall.example',
  };
  const providers = {
    email: {
      from: { address: 'hello@rollcall.example', name: 'Rollcall' },
      providers: [
        ...(smtpPort === undefined ? [] : [mailpit]),
        {
          name: 'sendgrid',
          kind: 'sendgrid',
          priority: 1,
          baseUrl: urls.sendgrid,
          apiKey: sendgrid.apiKey,
          notificationKey: createPublicKey(sendgrid.privateKey)
            .export({ type: 'spki', format: 'der' })
            .toString('base64'),
        },
      ],
    },
    sms: {
      region: 'ZA',
      providers: [
        {
          name: 'bulksms',
          kind: 'bulksms',
          baseUrl: urls.bulksms,
          user: bulksms.tokenId,
          password: bulksms.tokenSecret,
          notificationToken,
        },
        {
          name: 'clickatell',
          kind: 'clickatell',
          priority: 1,
          baseUrl: urls.clickatell,
          apiKey: clickatell.apiKey,
          notificationToken,
        },
        {
          name: 'twilio',
          kind: 'twilio',
          priority: 2,
          baseUrl: urls.twilio,
          accountSid: twilio.accountSid,
          authToken: twilio.authToken,
          sender: '+27600000001',
        },
      ],
    },
    push: {
      providers: [
        {
          name: 'fcm',
          kind: 'fcm',
          baseUrl: urls.fcm,
          projectId: fcm.projectId,
          clientEmail: `messages@${fcm.projectId}.iam.gserviceaccount.com`,
          privateKey: fcm.privateKey,
          tokenUri: `${urls.fcm}/token`,
        },
      ],
    },
  };
  await writeFile(file, JSON.stringify(providers), { mode: 0o600 });
}
