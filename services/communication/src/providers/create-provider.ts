import type { Clock } from '@rollcall/platform/clock.ts';
import type { AddressRule } from '@rollcall/platform/outbound/address-rules.ts';
import type { Dispatcher } from 'undici';
import type { MessageProvider, OutgoingEmail, OutgoingPush, OutgoingSms } from '../domain/ports.ts';
import { createApns } from './apns.ts';
import { createBulkSms } from './bulksms.ts';
import { createClickatell } from './clickatell.ts';
import { createFcm } from './fcm.ts';
import type { ProviderSettings } from './provider-settings.ts';
import { createSendGrid } from './sendgrid.ts';
import { createSmpp } from './smpp.ts';
import { createSmtp, type SmtpSettings } from './smtp.ts';
import { createTwilio } from './twilio.ts';
import { createWebPush } from './webpush.ts';

/** A provider of any channel. */
export type AnyProvider = MessageProvider<OutgoingEmail> | MessageProvider<OutgoingSms> | MessageProvider<OutgoingPush>;

export interface ProviderDeps {
  readonly dispatcher: Dispatcher;
  readonly mayConnect: AddressRule;
  readonly clock: Clock;
  /** Where a provider of that name sends its notifications. */
  readonly notificationsUrl: (name: string) => string;
}

/** Makes the provider that an entry of the file describes. */
export function createProvider(settings: ProviderSettings, deps: ProviderDeps): AnyProvider {
  const { name, timeoutSeconds } = settings;
  const timeoutMs = timeoutSeconds * 1000;
  switch (settings.kind) {
    case 'smtp':
      return createSmtp(smtpSettings(settings, timeoutMs));
    case 'sendgrid':
      return createSendGrid({ ...settings, baseUrl: new URL(settings.baseUrl), timeoutMs }, deps);
    case 'twilio': {
      const statusCallbackUrl = deps.notificationsUrl(name);
      return createTwilio({ ...settings, baseUrl: new URL(settings.baseUrl), timeoutMs, statusCallbackUrl }, deps);
    }
    case 'bulksms':
      return createBulkSms({ ...settings, baseUrl: new URL(settings.baseUrl), timeoutMs }, deps);
    case 'clickatell':
      return createClickatell({ ...settings, baseUrl: new URL(settings.baseUrl), timeoutMs }, deps);
    case 'smpp': {
      const { ca, ...others } = settings;
      return createSmpp({ ...others, timeoutMs, ...(ca !== undefined && { ca }) });
    }
    case 'fcm': {
      const { projectId, clientEmail, privateKey, tokenUri, baseUrl } = settings;
      const account = { clientEmail, privateKey, tokenUri };
      return createFcm({ projectId, account, baseUrl: new URL(baseUrl), timeoutMs }, deps);
    }
    case 'apns':
      return createApns({ ...settings, baseUrl: new URL(settings.baseUrl), timeoutMs }, deps);
    case 'webpush':
      return createWebPush({ ...settings, timeoutMs, mayConnect: deps.mayConnect }, deps);
    default:
      return settings satisfies never;
  }
}

function smtpSettings(
  { ca, user, password, notificationToken, dkim, ...settings }: Extract<ProviderSettings, { kind: 'smtp' }>,
  timeoutMs: number,
): SmtpSettings {
  const { host, port, tls, connections, bounceDomain } = settings;
  return {
    host,
    port,
    tls,
    connections,
    bounceDomain,
    timeoutMs,
    ...(notificationToken !== undefined && { notificationToken }),
    ...(ca !== undefined && { ca }),
    ...(user !== undefined && { auth: { user, pass: password ?? '' } }),
    ...(dkim !== undefined && { dkim }),
  };
}
