import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from './replica.ts';

const PAUSE_MS = 250;
const WITHIN_MS = 240_000;

/** Calls until there is an answer that is no failure: what a careful client does with a key. */
export async function insist(call: () => Promise<Answer>): Promise<Answer> {
  const untilMs = performance.now() + WITHIN_MS;
  while (true) {
    const answer = await call().catch(() => undefined);
    if (answer !== undefined && answer.status < 500 && answer.status !== 409) return answer;
    if (performance.now() > untilMs) throw new Error(`No answer: ${JSON.stringify(answer?.body)}`);
    await sleep(PAUSE_MS);
  }
}
