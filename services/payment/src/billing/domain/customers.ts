import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import type { Owner } from '../../domain/owner.ts';

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
}

export interface Customer extends CustomerFields {
  readonly id: string;
  readonly subject: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
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
  /** Undefined where there is none. */
  update(id: string, owner: Owner, change: Partial<CustomerFields>): Promise<Customer | undefined>;
}

/** Of a customer that is made without saying them. */
export const customerDefaults: Omit<CustomerFields, 'email'> = {
  name: null,
  address: [],
  taxId: null,
  timeZone: 'UTC',
  locale: 'en',
};
