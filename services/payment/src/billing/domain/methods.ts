import { paymentError } from '../../domain/errors.ts';
import type { ProviderName, StoredMethod } from '../../domain/ports.ts';
import type { Refusal } from '../../domain/refusals.ts';

/** A method of a customer that a provider keeps. */
export interface PaymentMethod {
  readonly id: string;
  readonly customerId: string;
  readonly provider: ProviderName;
  /** False since the provider said that it is gone. */
  readonly usable: boolean;
  readonly createdAt: Date;
  /** A secret: never shown. */
  readonly method: StoredMethod;
}

export interface MethodStore {
  /** Of customers, the newest first. */
  listOf(customerIds: readonly string[]): Promise<readonly PaymentMethod[]>;
  /** Forgets it, for subscriptions and at its provider too. @returns whether the customer had it. */
  remove(customerId: string, methodId: string): Promise<boolean>;
}

/** Pure. Of a request that names a method. */
export function methodNotFound(): Refusal {
  return { field: 'methodId', error: paymentError('METHOD_NOT_FOUND') };
}

/** The method to charge: the one that is asked for, else the newest of the provider that is usable. */
export function chargeable(
  methods: readonly PaymentMethod[],
  { provider, methodId }: { readonly provider: ProviderName | undefined; readonly methodId: string | undefined },
): PaymentMethod | undefined {
  const usable = methods.filter((method) => method.usable);
  return usable.find(({ id }) => id === methodId) ?? usable.find((method) => method.provider === provider);
}
