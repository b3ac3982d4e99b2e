import { Counter, Histogram, type Registry } from 'prom-client';
import type { Lookup, Outcome, PaymentProvider, Settlement } from '../domain/ports.ts';
import type { ConfiguredProviders } from './providers-file.ts';

/** What a provider was asked for. */
type Call =
  | 'checkout'
  | 'close_checkout'
  | 'charge'
  | 'forget_method'
  | 'look_up'
  | 'refund'
  | 'look_up_refund'
  | 'settlement';

type Result = Outcome<unknown> | Lookup | Settlement;
type Measure = <R extends Result>(call: Call, asked: Promise<R>) => Promise<R>;

const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Counts what providers are asked by this replica, and measures how long they take to answer. */
export function measureProviders(metrics: Registry, providers: ConfiguredProviders): ConfiguredProviders {
  const calls = new Counter({
    name: 'rollcall_payment_provider_calls_total',
    help: 'What providers of payments were asked by this replica, by what came of it.',
    labelNames: ['provider', 'call', 'outcome'],
    registers: [metrics],
  });
  const durations = new Histogram({
    name: 'rollcall_payment_provider_call_duration_seconds',
    help: 'How long providers of payments took to answer.',
    labelNames: ['provider', 'call'],
    buckets: SECONDS,
    registers: [metrics],
  });
  const measured = new Map(
    providers.names.flatMap((name) => {
      const provider = providers.find(name);
      const measure: Measure = async (call, asked) => {
        const end = durations.startTimer({ provider: name, call });
        const result = await asked;
        end();
        calls.inc({ provider: name, call, outcome: outcomeOf(result) });
        return result;
      };
      return provider === undefined ? [] : [[name, measuredProvider(provider, measure)] as const];
    }),
  );
  return { ...providers, find: (name) => measured.get(name) };
}

function outcomeOf(result: Result): string {
  return 'outcome' in result ? result.outcome : result.found;
}

function measuredProvider(provider: PaymentProvider, measure: Measure): PaymentProvider {
  const { stored } = provider;
  const close = provider.closeCheckout?.bind(provider);
  const settle = provider.settlement?.bind(provider);
  return {
    ...provider,
    createCheckout: (request) => measure('checkout', provider.createCheckout(request)),
    lookUp: (question) => measure('look_up', provider.lookUp(question)),
    refund: (request) => measure('refund', provider.refund(request)),
    lookUpRefund: (request) => measure('look_up_refund', provider.lookUpRefund(request)),
    ...(close && { closeCheckout: (reference) => measure('close_checkout', close(reference)) }),
    ...(settle && { settlement: (from, to) => measure('settlement', settle(from, to)) }),
    ...(stored && {
      stored: {
        charge: (charge) => measure('charge', stored.charge(charge)),
        forget: (method) => measure('forget_method', stored.forget(method)),
      },
    }),
  };
}
