import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import type { Parsed } from '@rollcall/platform/mail-address.ts';
import { type PushPlatform, type PushTarget, parsePushTarget, pushPlatforms } from './recipients.ts';

/** A device of somebody who uses a subject's app. */
export interface Device {
  readonly target: PushTarget;
  /** By which its subject knows who uses it. */
  readonly user: string | undefined;
  /** Which of the subject's apps. */
  readonly app: string | undefined;
  readonly registeredAt: Date;
}

/** What is known of a token. */
interface KnownDevice {
  readonly platform: PushPlatform;
  /** Its provider said so, and it was not registered since. */
  readonly isGone: boolean;
}

/** Devices of subjects, as they are stored. */
export interface DeviceStore {
  /** Those that are there, newest first. @param user undefined: of all users. */
  list(subject: string, user: string | undefined, page: ListPage): Promise<NewestPage<Device>>;
  /** Also again: then it is there, whatever was said of it before. */
  register(
    subject: string,
    device: Omit<Device, 'registeredAt'>,
  ): Promise<{ readonly device: Device; readonly isNew: boolean }>;
  /** @returns whether it was registered. */
  remove(subject: string, targets: readonly PushTarget[]): Promise<boolean>;
  /** @param targets what a token may be. */
  find(subject: string, targets: readonly PushTarget[]): Promise<KnownDevice | undefined>;
  /** What was registered after `since` stays. */
  forget(subject: string, target: PushTarget, since: Date): Promise<void>;
}

/**
 * Pure. Reads the token of a path. A PushSubscription of a browser is JSON with slashes, which no
 * path can have on its way through proxies: it comes in base64url.
 */
export function parseDeviceToken(text: string, platform: PushPlatform): Parsed<PushTarget> {
  return parsePushTarget(platform === 'webpush' ? jsonOf(text) : text, platform);
}

/** Pure. What {@link parseDeviceToken} reads. */
export function deviceTokenOf(target: PushTarget): string {
  if (target.platform !== 'webpush') return target.token;
  const { endpoint, p256dh, auth } = target;
  return Buffer.from(JSON.stringify({ endpoint, keys: { p256dh, auth } })).toString('base64url');
}

/** Pure. All that a token may be whose platform nobody says. */
export function possibleTargets(text: string): readonly PushTarget[] {
  return pushPlatforms.flatMap((platform) => {
    const parsed = parseDeviceToken(text, platform);
    return 'value' in parsed ? [parsed.value] : [];
  });
}

function jsonOf(text: string): string {
  return text.startsWith('{') ? text : Buffer.from(text, 'base64url').toString();
}
