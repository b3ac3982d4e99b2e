import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import { paymentError } from '../../domain/errors.ts';
import type { Owner } from '../../domain/owner.ts';
import type { Refusal } from '../../domain/refusals.ts';

/** Who pays invoices. Personal data but for the time zone and the locale. */
export interface CustomerFields {
  readonly email: string;
  readonly name: string | null;
  /** Lines of the postal address, for invoices. */
  readonly address: readonly string[];
  /** A VAT number, as invoices show it. */
  readonly taxId: string | null;
  /** By IANA's name: its days are those of billing. */
  readonly timeZone: string;
  /** Of mails, such as `en-ZA`. */
  readonly locale: string;
  /** Of the caller; kept and given back as it came. */
  readonly metadata: Readonly<Record<string, string>>;
}

export interface Customer extends CustomerFields {
  readonly id: string;
  readonly subject: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** Since then nothing of the person is left: the address is empty. */
  readonly erasedAt: Date | undefined;
}

/** What binds a customer, by ids. */
export interface OpenThings {
  /** That have not ended. */
  readonly subscriptions: readonly string[];
  /** That are drafts, or not paid. */
  readonly invoices: readonly string[];
  /** That are not over, in review or disputed, or with a refund that is. */
  readonly payments: readonly string[];
}

interface CustomerQuery {
  readonly owner: Owner;
  /** Whatever its capitals. */
  readonly email: string | undefined;
  readonly page: ListPage;
}

export interface CustomerStore {
  /** Makes it, or finds the one that has the id. */
  create(customer: CustomerFields & Pick<Customer, 'id' | 'subject'>): Promise<Customer>;
  find(id: string, owner: Owner): Promise<Customer | undefined>;
  list(query: CustomerQuery): Promise<NewestPage<Customer>>;
  /** Undefined where there is none. @throws ServiceError CUSTOMER_ERASED. */
  update(id: string, owner: Owner, change: Partial<CustomerFields>): Promise<Customer | undefined>;
  /**
   * Erases the person, with what providers and mails have of them. What was issued stays, as the law
   * has it. Undefined where there is none; one that is erased stays so.
   *
   * @throws ServiceError CUSTOMER_IN_USE.
   */
  erase(id: string, owner: Owner): Promise<Customer | undefined>;
}

/** Pure. Why nothing may be made for a customer. */
export function customerRefusals(customer: Customer | undefined): readonly Refusal[] {
  if (customer === undefined) return [{ field: 'customerId', error: paymentError('CUSTOMER_NOT_FOUND') }];
  if (customer.erasedAt === undefined) return [];
  return [{ field: 'customerId', error: paymentError('CUSTOMER_ERASED') }];
}

/** What is left of the personal data of one who was erased. */
export const blankCustomer = { email: '', name: null, address: [], taxId: null, metadata: {} } as const;

/** Pure. @throws ServiceError CUSTOMER_IN_USE. */
export function refuseWhileOpen(open: OpenThings): void {
  if (open.subscriptions.length + open.invoices.length + open.payments.length === 0) return;
  throw paymentError('CUSTOMER_IN_USE', { details: { open } });
}

/** Of a customer that is made without saying them. */
export const customerDefaults: Omit<CustomerFields, 'email'> = {
  name: null,
  address: [],
  taxId: null,
  timeZone: 'UTC',
  locale: 'en',
  metadata: {},
};
