import { createHash } from 'node:crypto';
import { callParts, isSameSecret, isSignedWith, isStandardSignedWith } from './signatures.ts';

/** How far the timestamp of a call may be from our clock, in both directions. */
const TOLERANCE_MS = 5 * 60_000;
/**
 * Replicas' clocks differ: an id is remembered for a little longer than its timestamp is good for.
 */
const SLACK_MS = 60_000;
/** Senders of Standard Webhooks try for hours, with the same id and a new timestamp each time. */
const ID_REMEMBERED_MS = 3 * 24 * 60 * 60_000;
const ID_MAX_LENGTH = 256;

/** Which signatures of our own headers are accepted; those of Standard Webhooks always are. */
export interface SignatureRules {
  /**
   * Signatures of the body alone, without X-Webhook-Timestamp: good for ever, and for every path
   * that accepts the body.
   */
  readonly plainSignatures: boolean;
  /** Those of `<timestamp>.<body>`, which do not cover the path. */
  readonly legacySignatures: boolean;
}

/** What a call brings to show that it may be made. Headers are as they were sent. */
export interface CallProof {
  /** Canonical path of the operation: the same call to another path is another call. */
  readonly path: string;
  /** The body, byte for byte. */
  readonly body: Buffer;
  /**
   * The body says what is to be done, and to what. A signature that does not cover the path is of
   * no use where it does not.
   */
  readonly isBound: boolean;
  /**
   * `X-Webhook-Signature`: of the body, or of `<timestamp>.<path>.<body>` where there is a
   * timestamp.
   */
  readonly signature: string | undefined;
  /** `X-Webhook-Timestamp`, unix seconds. */
  readonly timestamp: string | undefined;
  /** The headers of Standard Webhooks. */
  readonly standard: {
    readonly id: string | undefined;
    readonly timestamp: string | undefined;
    readonly signature: string | undefined;
  };
  /** `webhook_secret` and `secret` of the body. */
  readonly secrets: readonly (string | undefined)[];
}

/** A call that may be made once only. */
interface OneTimeCall {
  readonly id: string;
  /** Of what the call is to do: a repetition has the same. */
  readonly digest: Buffer;
  /** From then on its timestamp is too old anyway, or its sender has given up. */
  readonly until: Date;
}

/**
 * Whether a call is proven, and if so, whether it may be made more than once: that is where it is
 * signed with no time.
 */
export type Verdict =
  | { readonly proven: false; readonly reason: string }
  | { readonly proven: true; readonly once: OneTimeCall | undefined };

interface Judgement {
  readonly now: Date;
  readonly rules: SignatureRules;
}

/**
 * Judges a call by the secret that it has to know (docs/delivery.md, "Signed calls"). The right
 * secret suffices, or one valid signature that covers the path, or one of a body that says what it
 * is for. A timestamp that is sent has to be within five minutes of `now`, whatever else proves the
 * call, and `X-Webhook-Timestamp` has to be signed. Only what is signed distinguishes calls.
 */
export function judgeProof(secret: string, proof: CallProof, { now, rules }: Judgement): Verdict {
  const { timestamp, standard } = proof;
  if (timestamp !== undefined && Object.values(standard).some((header) => header !== undefined)) {
    return { proven: false, reason: 'X-Webhook-Timestamp and the headers of Standard Webhooks exclude each other' };
  }
  const sentAt = timestamp ?? standard.timestamp;
  const sentAtMs = sentAt === undefined ? now.getTime() : instantOf(sentAt);
  if (sentAtMs === undefined || Math.abs(sentAtMs - now.getTime()) > TOLERANCE_MS) {
    return { proven: false, reason: 'The timestamp of the call is malformed or more than 5 minutes off' };
  }
  if ((standard.id?.length ?? 0) > ID_MAX_LENGTH) {
    return { proven: false, reason: `webhook-id must have at most ${ID_MAX_LENGTH} characters` };
  }
  const isStandard = isStandardSigned(secret, proof);
  if (!isSecretGiven(secret, proof) && !isSigned(secret, proof)) {
    const isBodySigned = isStandard || isBodySignedAlone(secret, proof, rules);
    if (!isBodySigned) return { proven: false, reason: refusalOf(proof, rules) };
    if (!proof.isBound) return { proven: false, reason: 'The signed body must name the action and what it is for' };
  }
  const content = createHash('sha256').update(proof.body).digest('hex');
  const digest = createHash('sha256').update(`${proof.path}\n${content}`).digest();
  // An id that is not signed could be changed at will.
  if (isStandard) {
    const until = new Date(sentAtMs + ID_REMEMBERED_MS);
    return { proven: true, once: { id: `id.${standard.id}`, digest, until } };
  }
  if (timestamp === undefined) return { proven: true, once: undefined };
  // The same bytes at the same time are the same call. Not the signature: one and the same is spelt
  // in many ways. Where the path is not signed, they are good for the first path alone.
  const until = new Date(sentAtMs + TOLERANCE_MS + SLACK_MS);
  const id = isSigned(secret, proof) ? digest.toString('hex') : content;
  return { proven: true, once: { id: `${timestamp}.${id}`, digest, until } };
}

function isSecretGiven(secret: string, { secrets }: CallProof): boolean {
  return secrets.some((given) => given !== undefined && isSameSecret(secret, given));
}

/** With the path. */
function isSigned(secret: string, { path, body, signature, timestamp }: CallProof): boolean {
  if (signature === undefined || timestamp === undefined) return false;
  return isSignedWith(secret, callParts({ timestamp, path, body }), signature);
}

/** Without the path, by our own headers, where that is allowed. */
function isBodySignedAlone(secret: string, { body, signature, timestamp }: CallProof, rules: SignatureRules): boolean {
  if (signature === undefined) return false;
  if (timestamp === undefined) return rules.plainSignatures && isSignedWith(secret, body, signature);
  return rules.legacySignatures && isSignedWith(secret, [`${timestamp}.`, body], signature);
}

function isStandardSigned(secret: string, { body, standard }: CallProof): boolean {
  const { id, timestamp, signature } = standard;
  if (id === undefined || timestamp === undefined || signature === undefined) return false;
  return isStandardSignedWith(secret, { id, timestamp, body }, signature);
}

function refusalOf(proof: CallProof, { plainSignatures }: SignatureRules): string {
  const { path, signature, timestamp, standard, secrets } = proof;
  const wanted = `sign <timestamp>.<path>.<body> with the webhook secret, the path being ${path}`;
  if ([signature, standard.signature, ...secrets].every((shown) => shown === undefined)) {
    return `The service has a webhook secret, which the call must prove to know; ${wanted} (rollcall: ROLLCALL_WEBHOOK_SECRET)`;
  }
  if (signature !== undefined && timestamp === undefined && !plainSignatures) {
    return `Signatures of the body alone are not accepted; send X-Webhook-Timestamp, and ${wanted}`;
  }
  return `The webhook signature or secret is wrong; ${wanted}`;
}

/** @returns milliseconds since 1970; undefined for anything but unix seconds. */
function instantOf(timestamp: string): number | undefined {
  return /^\d{1,11}$/.test(timestamp) ? Number(timestamp) * 1000 : undefined;
}
