import type { Stripe } from 'stripe';
import type { Lookup, PaymentQuestion, ProviderFact } from '../../domain/ports.ts';
import { unknownLookup } from '../call.ts';
import { intentFacts, partsOf, readIntent, readList, readSession, sessionFacts, setupFacts } from './objects.ts';
import { attempt, type Tried } from './outcomes.ts';

const PAGE = 100;
/** So that a lookup ends before it is another's. Nobody is charged more often in a few days. */
const MOST_PAGES = 5;
/** Clocks differ; what is older is another payment's. */
const SLACK_SECONDS = 3600;

/** What Stripe has of a payment: by its session, its intent, or among those of the customer. */
export async function lookUpPayment(stripe: Stripe, question: PaymentQuestion, now: Date): Promise<Lookup> {
  const { checkoutRef, chargeRef, method } = question;
  if (chargeRef !== undefined) {
    return found(await get(() => stripe.paymentIntents.retrieve(chargeRef), now), intentFacts);
  }
  if (method !== undefined) return lookUpCharge(stripe, question, now);
  // Nobody has the address of a session whose id we never learnt, so nobody can pay it.
  if (checkoutRef === undefined) return { found: 'absent' };
  const params = { expand: ['setup_intent'] };
  return found(await get(() => stripe.checkout.sessions.retrieve(checkoutRef, params), now), factsOfSession);
}

/** One of mode `setup` is told by its SetupIntent. */
function factsOfSession(object: unknown): readonly ProviderFact[] | undefined {
  const facts = sessionFacts(object, false);
  const setup = readSession(object)?.setup_intent;
  return facts?.length === 0 && typeof setup === 'object' && setup !== null ? setupFacts(setup) : facts;
}

async function lookUpCharge(stripe: Stripe, question: PaymentQuestion, now: Date): Promise<Lookup> {
  const { paymentId, method, createdAt } = question;
  const { customer } = partsOf(method ?? { token: '' });
  const created = { gte: Math.floor(createdAt.getTime() / 1000) - SLACK_SECONDS };
  let last: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const params = { customer, created, limit: PAGE, ...(last === undefined ? {} : { starting_after: last }) };
    const tried = await get(() => stripe.paymentIntents.list(params), now);
    if (tried.kind !== 'object') return found(tried, () => undefined);
    const list = readList(tried.object);
    if (list === undefined) return { found: 'unknown' };
    const intent = list.find((entry) => readIntent(entry)?.metadata?.paymentId === paymentId);
    if (intent !== undefined) return found({ kind: 'object', object: intent }, intentFacts);
    if (list.length < PAGE) return { found: 'absent' };
    last = readIntent(list.at(-1))?.id;
    if (last === undefined) break;
  }
  return { found: 'unknown' };
}

function get(run: () => Promise<unknown>, now: Date): Promise<Tried> {
  return attempt(run, 'not_accepted', now);
}

function found(tried: Tried, read: (object: unknown) => readonly ProviderFact[] | undefined): Lookup {
  if (tried.kind === 'none') return unknownLookup(tried.result);
  const facts = tried.kind === 'object' ? read(tried.object) : undefined;
  if (facts === undefined) return { found: 'unknown' };
  return facts.length === 0 ? { found: 'open' } : { found: 'facts', facts };
}
