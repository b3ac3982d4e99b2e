/** A connection to the tables of payment. */
interface Tables {
  query(text: string, values: unknown[]): Promise<unknown>;
}

/** Makes so many subscriptions like this one, whose next period is due now. */
export async function makeRenewalsOf(tables: Tables, subscriptionId: string, count: number): Promise<void> {
  await tables.query(
    `INSERT INTO subscriptions (id, subject, customer_id, plan_id, plan_version, provider, method_id, state, collection,
       time_zone, anchor, next_index, cancel_at_period_end, pending_amount, credit_balance, open_by_checkout, due_at,
       created_at)
     SELECT gen_random_uuid(), subject, customer_id, plan_id, plan_version, provider, method_id, state, collection,
       time_zone, anchor - interval '1 month', 1, false, 0, 0, false, now(), created_at
     FROM subscriptions, generate_series(1, $2) WHERE id = $1`,
    [subscriptionId, count],
  );
}
