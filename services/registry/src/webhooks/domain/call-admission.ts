import type { Clock } from '@rollcall/platform/clock.ts';
import type { CallLedger } from '@rollcall/platform/webhooks/call-ledger.ts';
import { type CallProof, judgeProof, type SignatureRules } from '@rollcall/platform/webhooks/call-proof.ts';
import { hasCode, RegistryError } from '../../common/errors.ts';
import type { WebhookConfigStore, WebhookSettings } from './webhook-settings.ts';

/** A call of a webhook, with what it shows. */
export interface WebhookCall extends CallProof {
  /** Who calls, as authentication has it; undefined where that is off. */
  readonly subject: string | undefined;
  /**
   * Whether it makes nothing run and nothing be sent: then anybody may make it, of a service
   * without a secret.
   */
  readonly isHarmless: boolean;
}

/** Which calls of webhooks may be made. */
export interface WebhookRules extends SignatureRules {
  /**
   * Whether anybody may make calls that need a proof, of a service without a secret, where callers
   * are not known.
   */
  readonly allowUnsigned: boolean;
}

export interface AdmissionDeps {
  readonly configs: WebhookConfigStore;
  readonly calls: CallLedger;
  readonly rules: WebhookRules;
  readonly clock: Clock;
}

/** A call that may be made. */
export interface Admission {
  /** It was carried out. */
  done(): Promise<void>;
  /**
   * Carries the call out, after which it cannot be made again; refused with one of our errors, or
   * failed before it was known to be carried out, it can.
   *
   * @param work called with when the call was made first: made again before it was known to be
   * carried out, it is the same call. And whether it is made again, so that it may have been
   * carried out before.
   */
  carryOut<T>(work: (at: Date, isAgain: boolean) => Promise<T>): Promise<T>;
}

/**
 * Lets a call through of a service without a secret: that of a known caller, or any where that is
 * allowed.
 *
 * @throws RegistryError SIGNATURE_REQUIRED.
 */
export function admitUnsigned(
  { rules, clock }: Pick<AdmissionDeps, 'rules' | 'clock'>,
  { subject, isHarmless }: WebhookCall,
): Admission {
  if (isHarmless || subject !== undefined || rules.allowUnsigned) return freeAdmission(clock);
  throw new RegistryError('SIGNATURE_REQUIRED');
}

/** What needs no proof may be made at any time. */
export function freeAdmission(clock: Clock): Admission {
  return { done: () => Promise.resolve(), carryOut: (work) => work(clock.now(), false) };
}

/**
 * Lets a call through that proves to know the secret of the settings.
 *
 * @throws RegistryError INVALID_SIGNATURE, SECRET_MISSING; the stores' errors.
 */
export async function admit(
  { configs, calls, rules, clock }: AdmissionDeps,
  settings: WebhookSettings,
  proof: WebhookCall,
): Promise<Admission> {
  const secret = await configs.readSecret(settings);
  // A secret that was set and cannot be found must not open the door.
  if (secret === undefined) {
    const message = `The secret of '${settings.serviceName}' is configured and cannot be read; restore its Secret, or delete its WebhookConfig and set both anew`;
    throw new RegistryError('SECRET_MISSING', message);
  }
  const now = clock.now();
  const verdict = judgeProof(secret, proof, { now, rules });
  if (!verdict.proven) throw new RegistryError('INVALID_SIGNATURE', verdict.reason);
  if (verdict.once === undefined) return freeAdmission(clock);
  const { id, digest, until } = verdict.once;
  const call = { scope: settings.serviceName, id };
  const entry = await calls.begin({ ...call, digest, until, at: now });
  if (!isRepeatable(entry, digest, now)) {
    throw new RegistryError('INVALID_SIGNATURE', 'A call with this id, or of this content and time, was made before');
  }
  const done = () => calls.end(call);
  return {
    done,
    async carryOut(work) {
      let result: Awaited<ReturnType<typeof work>>;
      try {
        result = await work(entry.at, entry.at.getTime() !== now.getTime());
      } catch (error) {
        if (hasChangedNothing(error)) await calls.forget(call);
        throw error;
      }
      await done();
      return result;
    },
  };
}

/**
 * The same call again is let through as long as it is not known to be carried out, and, answered as
 * it was, within the second in which it was made first: that is one job anyway.
 */
function isRepeatable(entry: Awaited<ReturnType<CallLedger['begin']>>, digest: Buffer, now: Date): boolean {
  if (!entry.digest.equals(digest)) return false;
  return !entry.done || Math.floor(entry.at.getTime() / 1000) === Math.floor(now.getTime() / 1000);
}

function hasChangedNothing(error: unknown): boolean {
  return error instanceof RegistryError && !hasCode(error, 'STORE_UNAVAILABLE');
}
