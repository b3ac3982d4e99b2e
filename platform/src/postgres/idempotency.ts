import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { commonError, toServiceError } from '../common-errors.ts';
import { type ErrorKind, errorMessage, ServiceError } from '../errors.ts';
import type { Logger } from '../process/log.ts';
import { sleep } from '../retry.ts';
import type { BlindIndex, Vault } from '../vault.ts';
import type { Pool, PoolClient } from './pool.ts';

/** Longer than anything that is called meanwhile may take. */
const CLAIM_SECONDS = 30;
const KEPT_HOURS = 24;
/** Who calls while another call with the key is under way waits for its answer for so long. */
const WAIT_MS = 3000;
const FIRST_POLL_MS = 25;
const LONGEST_POLL_MS = 400;

/** What a caller gets, by whichever door. */
export interface Answer {
  /** Of HTTP. */
  readonly status: number;
  /** Of what was made, relative to the path of the call: the gateway's is longer than the service's. */
  readonly location?: string;
  /** JSON. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** A call that is to have one effect, however often it is made. */
export interface KeyedCall {
  readonly subject: string;
  /** The same by every door, such as `createPayment`. */
  readonly operation: string;
  /** `Idempotency-Key`; undefined: this call is like no other. */
  readonly key: string | undefined;
  /** What calls with one key have in common, as JSON: the input, and the ids of the path. */
  readonly request: unknown;
  /** The id of what the call is about, where that was there before. */
  readonly about?: string | undefined;
}

/** An answer, and whether an earlier call has had it. */
export interface OnceAnswer {
  readonly answer: Answer;
  readonly isReplayed: boolean;
}

/**
 * Calls with a key of their caller (draft-ietf-httpapi-idempotency-key-header), each of which has
 * one effect (docs/decisions/0310).
 */
export interface Idempotency {
  /**
   * Has the effect, or gives the answer of the call that had it.
   *
   * @param effect makes what has the id. It is called again with the same id where what became of
   * the call before is not known, or that failed with 429 or 5xx: what is there by that id is the
   * effect. It has to end within 30 s. `isNew`: it surely is not there yet.
   * @throws ServiceError IDEMPOTENCY_IN_PROGRESS (409), IDEMPOTENCY_KEY_REUSED (422); those of the
   * effect, also when repeated.
   */
  once(call: KeyedCall, effect: (id: string, isNew: boolean) => Promise<Answer>): Promise<OnceAnswer>;
  /** Forgets keys after a day. @param limit how many at most. @returns how many. */
  prune(limit: number): Promise<number>;
}

export interface IdempotencyDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  /** Of answers. Its keys have to stay for a day after another one is the newest. */
  readonly vault: Vault;
  /** Of requests. */
  readonly index: BlindIndex;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long a claim holds; 30 s when absent. */
  readonly claimSeconds?: number;
}

/** Who may have the effect now. */
interface Claim {
  readonly row: Pick<KeyedRow, 'subject' | 'operation' | 'key'>;
  /** Of what the effect makes. */
  readonly id: string;
  /** Nobody has had the id before. */
  readonly isNew: boolean;
  /** Of this claim alone: who takes the key over has another. */
  readonly claim: string;
}

type KeyedRow = KeyedCall & { readonly key: string };

type Outcome =
  | { readonly answer: Answer }
  | {
      readonly error: Pick<ServiceError, 'code' | 'message' | 'headers' | 'details'> & { readonly kind: ErrorKind };
    };

interface KeptRow {
  readonly same: boolean;
  readonly id: string;
  readonly outcome: Buffer | null;
}

/**
 * The table `idempotency_keys` of the service's schema has: `subject`, `operation` and `key` (text,
 * the primary key); `fingerprint bytea NOT NULL`; `resource_id uuid NOT NULL`; `about uuid`;
 * `claim uuid`; `claimed_until timestamptz NOT NULL`; `outcome bytea`; `created_at timestamptz NOT NULL DEFAULT
 * now()` with an index. Times are those of the database: clocks of two replicas are not compared.
 */
export function createIdempotency(deps: IdempotencyDeps): Idempotency {
  const { log, clock } = deps;
  const table = idempotencyTable(deps);

  async function claimOrOutcome(call: KeyedRow): Promise<Claim | Outcome> {
    const untilMs = clock.monotonicMs() + WAIT_MS;
    for (let poll = FIRST_POLL_MS; ; poll = Math.min(2 * poll, LONGEST_POLL_MS)) {
      const claim = await table.claim(call);
      if (claim !== undefined) return claim;
      const kept = await table.find(call);
      // Pruned, or given free, since the claim was refused.
      if (kept === undefined) continue;
      if (!kept.same) throw commonError('IDEMPOTENCY_KEY_REUSED');
      if (kept.outcome !== undefined) return kept.outcome;
      if (clock.monotonicMs() >= untilMs) throw commonError('IDEMPOTENCY_IN_PROGRESS');
      await sleep(poll);
    }
  }

  /** Where it fails the claim ends by itself, and who comes then finds the effect by its id. */
  async function settle(claim: Claim, outcome: Outcome | undefined): Promise<void> {
    try {
      await (outcome === undefined ? table.release(claim) : table.keep(claim, outcome));
    } catch (error) {
      log.warn({ message: errorMessage(error) }, 'the outcome of a call with a key was not kept');
    }
  }

  return {
    prune: (limit) => table.prune(limit),
    async once({ key, ...call }, effect) {
      if (key === undefined) return { answer: await effect(randomUUID(), true), isReplayed: false };
      const claim = await claimOrOutcome({ ...call, key });
      if (!('claim' in claim)) return replay(claim);
      try {
        const answer = await effect(claim.id, claim.isNew);
        await settle(claim, isKept(answer.status) ? { answer } : undefined);
        return { answer, isReplayed: false };
      } catch (error) {
        const known = toServiceError(error);
        await settle(
          claim,
          known !== undefined && isKept(known.kind.status) ? { error: plainError(known) } : undefined,
        );
        throw error;
      }
    },
  };
}

/**
 * Forgets what calls answered that made one of these, or were about it: who repeats one has what is so
 * now. Answers of calls that are under way are not kept. After the transaction that erases what they
 * said: who has read it before has a claim by then.
 */
export async function forgetOutcomes(client: Pool | PoolClient, ids: readonly string[]): Promise<void> {
  await client.query(
    'UPDATE idempotency_keys SET outcome = NULL, claim = NULL WHERE resource_id = ANY($1) OR about = ANY($1)',
    [ids],
  );
}

/** The same call may do better later. */
function isKept(status: number): boolean {
  return status < 500 && status !== 429;
}

function plainError({ code, message, headers, details, kind }: ServiceError) {
  return { code, message, headers, details, kind };
}

/** Of HTTP, with an answer that an earlier call has had. */
export const REPLAYED_HEADER = 'idempotent-replayed';

function replay(outcome: Outcome): OnceAnswer {
  if ('answer' in outcome) return { answer: outcome.answer, isReplayed: true };
  const { code, kind, headers, ...rest } = outcome.error;
  throw new ServiceError(code, kind, { ...rest, headers: { ...headers, [REPLAYED_HEADER]: 'true' } });
}

function idempotencyTable({ pool, vault, index, claimSeconds = CLAIM_SECONDS }: IdempotencyDeps) {
  /** Nothing where another has taken the key over. */
  async function end({ row, claim }: Claim, sealed: Buffer | null): Promise<void> {
    await pool().query(
      `UPDATE idempotency_keys SET claimed_until = now(), outcome = $5
       WHERE subject = $1 AND operation = $2 AND key = $3 AND claim = $4`,
      [row.subject, row.operation, row.key, claim, sealed],
    );
  }

  return {
    /**
     * The key, where nobody has it: it is new, or older than a day, or its claim has ended without
     * an outcome.
     */
    async claim({ subject, operation, key, request, about }: KeyedRow): Promise<Claim | undefined> {
      const text = canonicalJson(request);
      const claim = randomUUID();
      const newId = randomUUID();
      const { rows } = await pool().query<{ id: string }>(CLAIM, [
        subject,
        operation,
        key,
        index.of(text),
        newId,
        claim,
        claimSeconds,
        index.candidates(text),
        about,
      ]);
      const [row] = rows;
      if (row === undefined) return undefined;
      return { row: { subject, operation, key }, id: row.id, isNew: row.id === newId, claim };
    },
    async find({ subject, operation, key, request }: KeyedRow) {
      const { rows } = await pool().query<KeptRow>(
        `SELECT fingerprint = ANY($4) AS same, resource_id AS id, outcome
         FROM idempotency_keys WHERE subject = $1 AND operation = $2 AND key = $3`,
        [subject, operation, key, index.candidates(canonicalJson(request))],
      );
      const [row] = rows;
      if (row === undefined) return undefined;
      const { same, id, outcome } = row;
      const opened = same && outcome !== null ? parsed(vault.open(outcome, contextOf(id))) : undefined;
      return { same, outcome: opened };
    },
    async keep(claim: Claim, outcome: Outcome): Promise<void> {
      await end(claim, vault.seal(JSON.stringify(outcome), contextOf(claim.id)));
    },
    release: (claim: Claim) => end(claim, null),
    async prune(limit: number): Promise<number> {
      const { rowCount } = await pool().query(
        `DELETE FROM idempotency_keys WHERE (subject, operation, key) IN (
           SELECT subject, operation, key FROM idempotency_keys
           WHERE created_at < ${OLDEST} AND claimed_until <= now()
           ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED)`,
        [limit],
      );
      return rowCount ?? 0;
    },
  };
}

const OLDEST = `now() - interval '${KEPT_HOURS} hours'`;

const CLAIM = `
  INSERT INTO idempotency_keys AS kept
    (subject, operation, key, fingerprint, resource_id, claim, claimed_until, about)
  VALUES ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7), $9)
  ON CONFLICT (subject, operation, key) DO UPDATE SET
    claim = excluded.claim,
    about = excluded.about,
    claimed_until = excluded.claimed_until,
    fingerprint = CASE WHEN kept.created_at < ${OLDEST} THEN excluded.fingerprint ELSE kept.fingerprint END,
    resource_id = CASE WHEN kept.created_at < ${OLDEST} THEN excluded.resource_id ELSE kept.resource_id END,
    outcome = NULL,
    created_at = CASE WHEN kept.created_at < ${OLDEST} THEN now() ELSE kept.created_at END
  WHERE kept.claimed_until <= now()
    AND (kept.created_at < ${OLDEST} OR (kept.outcome IS NULL AND kept.fingerprint = ANY($8)))
  RETURNING resource_id AS id`;

function contextOf(id: string): string {
  return `idempotency ${id}`;
}

function parsed(text: Buffer): Outcome {
  const outcome: Outcome = JSON.parse(text.toString());
  return outcome;
}

/** The same text for values that differ in the order of members alone. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value ?? null, (_key, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
}
