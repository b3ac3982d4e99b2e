import { isDatabaseUnavailable } from './pool.ts';

/** Of one kind. The next one then has what came meanwhile: under load few statements do the work of many. */
const STATEMENTS_AT_A_TIME = 2;
const MOST_CALLS = 100;
const MOST_BYTES = 256 * 1024;
/** While the database is away, nobody waits longer for a statement than for a connection. */
const LONGEST_WAIT_MS = 3000;

export interface SharedStatementOptions<Call, Result> {
  /** Runs one statement, which has its effect for all of the calls or for none. @returns a result for each, in order. */
  readonly run: (calls: readonly Call[]) => Promise<readonly Result[]>;
  /** Which row a call changes: two of one row never share a statement. Absent: it changes none. */
  readonly rowOf?: (call: Call) => string;
  /** Of what a call sends, about; a large one is alone. Absent: all are small. */
  readonly bytesOf?: (call: Call) => number;
  /** How long a call waits for others, in milliseconds; 0 when absent. Only for what nobody waits for. */
  readonly gatherMs?: number;
}

interface Waiting<Call, Result> {
  readonly call: Call;
  readonly sinceMs: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Lets calls that wait at the same time share a statement: round trips, plans and commits cost more than a row
 * (docs/decisions/0417). Where it fails for what is in it, each is made alone, so that none fails for another.
 */
export function createSharedStatement<Call, Result>(
  options: SharedStatementOptions<Call, Result>,
): (call: Call) => Promise<Result> {
  const { run, gatherMs = 0 } = options;
  let waiting: Waiting<Call, Result>[] = [];
  let underWay = 0;
  let isScheduled = false;

  /** At the end of a turn of the event loop, or later, so that what comes until then is together. */
  function schedule(): void {
    if (isScheduled || waiting.length === 0 || underWay === STATEMENTS_AT_A_TIME) return;
    isScheduled = true;
    if (gatherMs > 0) setTimeout(beginScheduled, gatherMs);
    else setImmediate(beginScheduled);
  }

  function beginScheduled(): void {
    isScheduled = false;
    void begin();
  }

  async function begin(): Promise<void> {
    const { together, later } = chosen(waiting, options);
    waiting = later;
    underWay += 1;
    schedule();
    await settle(together);
    underWay -= 1;
    schedule();
  }

  async function settle(together: readonly Waiting<Call, Result>[]): Promise<void> {
    try {
      const results = await run(together.map(({ call }) => call));
      for (const [index, result] of results.entries()) together[index]?.resolve(result);
    } catch (error) {
      const isAway = isDatabaseUnavailable(error);
      if (isAway) giveUp(error);
      if (together.length === 1 || isAway) for (const { reject } of together) reject(error);
      else for (const each of together) await settle([each]);
    }
  }

  function giveUp(error: unknown): void {
    const longest = performance.now() - LONGEST_WAIT_MS;
    for (const { sinceMs, reject } of waiting) if (sinceMs <= longest) reject(error);
    waiting = waiting.filter(({ sinceMs }) => sinceMs > longest);
  }

  return (call) =>
    new Promise((resolve, reject) => {
      waiting.push({ call, sinceMs: performance.now(), resolve, reject });
      schedule();
    });
}

/** Pure. The first ones that may be in one statement, and the rest; at least one. */
function chosen<Call, Result>(
  waiting: readonly Waiting<Call, Result>[],
  { rowOf, bytesOf = () => 0 }: SharedStatementOptions<Call, Result>,
) {
  const together: Waiting<Call, Result>[] = [];
  const later: Waiting<Call, Result>[] = [];
  const rows = new Set<string>();
  let bytes = 0;
  for (const each of waiting) {
    const row = rowOf?.(each.call);
    const total = bytes + bytesOf(each.call);
    const isFull = together.length === MOST_CALLS || (together.length > 0 && total > MOST_BYTES);
    const isLater = isFull || (row !== undefined && rows.has(row));
    // Also of those that come later: calls of one row stay in their order.
    if (row !== undefined) rows.add(row);
    (isLater ? later : together).push(each);
    if (!isLater) bytes = total;
  }
  return { together, later };
}

/** Bytes as JSON has them for a column `bytea` of `json_to_recordset`. */
export function bytesIn(bytes: Buffer): string {
  return `\\x${bytes.toString('hex')}`;
}
