import type { Plan } from '../../domain/subscriptions.ts';
import type { ListPage, NewestPage, Owner } from './lists.ts';

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

export interface PlanStore {
  /** Makes it, or finds the one that has the id. */
  create(plan: Pick<StoredPlan, 'id' | 'subject' | 'terms'>): Promise<StoredPlan>;
  find(id: string, owner: Owner): Promise<StoredPlan | undefined>;
  list(query: PlanQuery): Promise<NewestPage<StoredPlan>>;
  /** Other terms are a new version; undefined where there is no plan. */
  update(id: string, owner: Owner, change: PlanChange): Promise<StoredPlan | undefined>;
}
