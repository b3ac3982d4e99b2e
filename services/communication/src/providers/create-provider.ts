import type { Clock } from '@rollcall/platform/clock.ts';
import type { AddressRule } from '@rollcall/platform/outbound/address-rules.ts';
import type { Dispatcher } from 'undici';
import type { MessageProvider, OutgoingEmail, OutgoingPush, OutgoingSms } from '../domain/ports.ts';
import type { ProviderSettings } from './provider-settings.ts';
import type { SmtpSettings } from './smtp.ts';

/** A provider of any channel. */
export type AnyProvider = MessageProvider<OutgoingEmail> | MessageProvider<OutgoingSms> | MessageProvider<OutgoingPush>;

export interface ProviderDeps {
  readonly dispatcher: Dispatcher;
  readonly mayConnect: AddressRule;
  readonly clock: Clock;
  /** Where a provider of that name sends its notifications. */
  readonly notificationsUrl: (name: string) => string;
}

/** Makes the provider that an entry of the file describes. Only those in use are loaded, with their libraries. */
export async function createProvider(settings: ProviderSettings, deps: ProviderDeps): Promise<AnyProvider> {
  const { name, timeoutSeconds } = settings;
  const timeoutMs = timeoutSeconds * 1000;
  switch (settings.kind) {
    case 'smtp': {
      const { createSmtp } = await import('./smtp.ts');
      return createSmtp(smtpSettings(settings, timeoutMs));
    }
    case 'sendgrid': {
      const { createSendGrid } = await import('./sendgrid.ts');
      return createSendGrid({ ...settings, baseUrl: new URL(settings.baseUrl), timeoutMs }, deps);
    }
    case 'twilio': {
      const { createTwilio } = await import('./twilio.ts');
      const statusCallbackUrl = deps.notificationsUrl(name);
      return createTwilio({ ...settings, baseUrl: new URL(settings.baseUrl), timeoutMs, statusCallbackUrl }, deps);
    }
    case 'bulksms': {
      const { createBulkSms } = await import('./bulksms.ts');
      return createBulkSms({ ...settings, baseUrl: new URL(settings.baseUrl), timeoutMs }, deps);
    }
    case 'clickatell': {
      const { createClickatell } = await import('./clickatell.ts');
      return createClickatell({ ...settings, baseUrl: new URL(settings.baseUrl), timeoutMs }, deps);
    }
    case 'smpp': {
      const { createSmpp } = await import('./smpp.ts');
      const { ca, ...others } = settings;
      return createSmpp({ ...others, timeoutMs, ...(ca !== undefined && { ca }) });
    }
    case 'fcm': {
      const { createFcm } = await import('./fcm.ts');
      const { projectId, clientEmail, privateKey, tokenUri, baseUrl } = settings;
      const account = { clientEmail, privateKey, tokenUri };
      return createFcm({ projectId, account, baseUrl: new URL(baseUrl), timeoutMs }, deps);
    }
    case 'apns': {
      const { createApns } = await import('./apns.ts');
      return createApns({ ...settings, baseUrl: new URL(settings.baseUrl), timeoutMs }, deps);
    }
    case 'webpush': {
      const { createWebPush } = await import('./webpush.ts');
      return createWebPush({ ...settings, timeoutMs, mayConnect: deps.mayConnect }, deps);
    }
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
