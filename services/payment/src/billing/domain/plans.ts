import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import { paymentError } from '../../domain/errors.ts';
import { isInvoiceable } from '../../domain/invoices.ts';
import type { Owner } from '../../domain/owner.ts';
import type { Refusal } from '../../domain/refusals.ts';
import { type Plan, pricePlan } from '../../domain/subscriptions.ts';

/** What one pays for a period, as one version of a plan has it. */
export interface PlanTerms extends Plan {
  /** Before the first period; 0 for none. */
  readonly trialDays: number;
}

/** A plan with its newest version. Subscriptions keep the version that they were made with. */
export interface StoredPlan {
  readonly id: string;
  readonly subject: string;
  /** Whether new subscriptions may have it. */
  readonly active: boolean;
  /** From 1. */
  readonly version: number;
  readonly terms: PlanTerms;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

interface PlanChange {
  /** Undefined: stays as it is. */
  readonly active: boolean | undefined;
  /** What the terms become. */
  readonly terms: (before: PlanTerms) => PlanTerms;
}

interface PlanQuery {
  readonly owner: Owner;
  readonly active: boolean | undefined;
  readonly page: ListPage;
}

/** Terms whose periods can be invoiced. @throws ServiceError INVOICE_TOTAL_NOT_ALLOWED. */
export function checkedTerms(terms: PlanTerms): PlanTerms {
  if (!isInvoiceable(pricePlan(terms))) throw paymentError('INVOICE_TOTAL_NOT_ALLOWED');
  return terms;
}

/** Pure. Why no subscription may have a plan. */
export function planRefusals(plan: StoredPlan | undefined): readonly Refusal[] {
  if (plan === undefined) return [{ field: 'planId', error: paymentError('PLAN_NOT_FOUND') }];
  return plan.active ? [] : [{ field: 'planId', error: paymentError('PLAN_INACTIVE') }];
}

export interface PlanStore {
  /** Makes it, or finds the one that has the id. */
  create(plan: Pick<StoredPlan, 'id' | 'subject' | 'terms'>): Promise<StoredPlan>;
  find(id: string, owner: Owner): Promise<StoredPlan | undefined>;
  list(query: PlanQuery): Promise<NewestPage<StoredPlan>>;
  /** Other terms are a new version; undefined where there is no plan. */
  update(id: string, owner: Owner, change: PlanChange): Promise<StoredPlan | undefined>;
}
