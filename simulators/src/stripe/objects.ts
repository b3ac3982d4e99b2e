// Objects of the API as they are sent, as far as npm stripe 23.1.0's types name what a payment service reads.

/** Times are Unix seconds, amounts minor units of `currency` of at most eight digits. */
interface Base<Name extends string> {
  readonly id: string;
  readonly object: Name;
  readonly created: number;
  readonly livemode: false;
}

export type Metadata = Readonly<Record<string, string>>;

export interface Customer extends Base<'customer'> {
  readonly email: string | null;
  readonly name: string | null;
  readonly description: string | null;
  readonly metadata: Metadata;
  readonly invoice_settings: { readonly default_payment_method: string | null };
  readonly deleted?: true;
}

export interface PaymentMethod extends Base<'payment_method'> {
  readonly type: 'card';
  readonly customer: string | null;
  readonly card: {
    readonly brand: string;
    readonly last4: string;
    readonly exp_month: number;
    readonly exp_year: number;
    readonly country: string;
    readonly fingerprint: string;
  };
}

export interface PaymentIntent extends Base<'payment_intent'> {
  readonly amount: number;
  readonly amount_received: number;
  readonly currency: string;
  readonly status: 'requires_payment_method' | 'requires_confirmation' | 'requires_action' | 'succeeded' | 'canceled';
  readonly customer: string | null;
  readonly payment_method: string | null;
  readonly latest_charge: string | null;
  readonly description: string | null;
  readonly metadata: Metadata;
  readonly setup_future_usage: 'off_session' | 'on_session' | null;
  readonly last_payment_error: {
    readonly code: string;
    readonly decline_code?: string;
    readonly message: string;
  } | null;
  readonly client_secret: string;
}

export interface Charge extends Base<'charge'> {
  readonly amount: number;
  readonly amount_captured: number;
  readonly amount_refunded: number;
  readonly balance_transaction: string | null;
  readonly currency: string;
  readonly customer: string | null;
  readonly payment_intent: string;
  readonly payment_method: string;
  readonly status: 'succeeded' | 'failed';
  readonly paid: boolean;
  readonly captured: boolean;
  readonly refunded: boolean;
  readonly failure_code: string | null;
  readonly failure_message: string | null;
  readonly metadata: Metadata;
}

export interface Refund extends Base<'refund'> {
  readonly amount: number;
  readonly currency: string;
  readonly charge: string;
  readonly payment_intent: string;
  readonly balance_transaction: string | null;
  readonly reason: string | null;
  readonly status: 'pending' | 'succeeded' | 'failed';
  readonly failure_reason?: string;
  readonly metadata: Metadata;
}

export interface Dispute extends Base<'dispute'> {
  readonly amount: number;
  readonly currency: string;
  readonly charge: string;
  readonly payment_intent: string;
  readonly reason: 'general';
  readonly status: 'needs_response' | 'won' | 'lost';
  readonly metadata: Metadata;
}

interface BalanceTransaction extends Base<'balance_transaction'> {
  readonly type: 'charge' | 'refund';
  readonly amount: number;
  readonly fee: number;
  readonly net: number;
  readonly currency: string;
  readonly source: string;
  readonly status: 'available' | 'pending';
  readonly available_on: number;
}

interface SetupIntent extends Base<'setup_intent'> {
  readonly status: 'requires_payment_method' | 'succeeded';
  readonly customer: string | null;
  readonly payment_method: string | null;
  readonly usage: 'off_session';
  readonly metadata: Metadata;
}

interface Price {
  readonly currency: string;
  readonly unit_amount: number;
  readonly name: string;
  readonly recurring: { readonly interval: 'day' | 'week' | 'month' | 'year'; readonly interval_count: number } | null;
}

export interface LineItem {
  readonly price: Price;
  readonly quantity: number;
}

export interface CheckoutSession extends Base<'checkout.session'> {
  readonly mode: 'payment' | 'setup' | 'subscription';
  readonly status: 'open' | 'complete' | 'expired';
  readonly payment_status: 'paid' | 'unpaid' | 'no_payment_required';
  readonly amount_subtotal: number | null;
  readonly amount_total: number | null;
  readonly currency: string | null;
  readonly client_reference_id: string | null;
  readonly customer: string | null;
  readonly customer_creation: 'always' | 'if_required' | null;
  readonly customer_email: string | null;
  readonly customer_details: { readonly email: string | null } | null;
  readonly metadata: Metadata;
  readonly payment_intent: string | null;
  readonly setup_intent: string | null;
  readonly subscription: string | null;
  readonly invoice: string | null;
  readonly success_url: string;
  readonly cancel_url: string | null;
  readonly url: string | null;
  readonly expires_at: number;
  readonly ui_mode: 'hosted_page';
}

export interface Subscription extends Base<'subscription'> {
  readonly status: 'active' | 'canceled';
  readonly customer: string;
  readonly currency: string;
  readonly default_payment_method: string | null;
  readonly cancel_at_period_end: boolean;
  readonly canceled_at: number | null;
  readonly latest_invoice: string | null;
  readonly metadata: Metadata;
  readonly items: ApiList<{
    readonly id: string;
    readonly object: 'subscription_item';
    readonly quantity: number;
    readonly current_period_start: number;
    readonly current_period_end: number;
    readonly price: {
      readonly object: 'price';
      readonly currency: string;
      readonly unit_amount: number;
      readonly recurring: Price['recurring'];
    };
  }>;
}

export interface Invoice extends Base<'invoice'> {
  readonly status: 'paid';
  readonly customer: string;
  readonly currency: string;
  readonly amount_due: number;
  readonly amount_paid: number;
  readonly billing_reason: 'subscription_create';
  readonly parent: {
    readonly type: 'subscription_details';
    readonly subscription_details: { readonly subscription: string; readonly metadata: Metadata };
  };
}

export interface ApiList<Item> {
  readonly object: 'list';
  readonly url: string;
  readonly has_more: boolean;
  readonly data: readonly Item[];
}

export interface WebhookEndpoint extends Base<'webhook_endpoint'> {
  readonly url: string;
  readonly enabled_events: readonly string[];
  readonly status: 'enabled';
  readonly api_version: string | null;
  readonly metadata: Metadata;
}

export type StripeObject =
  | Customer
  | PaymentMethod
  | PaymentIntent
  | Charge
  | Refund
  | Dispute
  | BalanceTransaction
  | SetupIntent
  | CheckoutSession
  | Subscription
  | Invoice
  | WebhookEndpoint
  | StripeEvent;

export interface StripeEvent extends Base<'event'> {
  readonly type: string;
  readonly api_version: string;
  readonly pending_webhooks: number;
  readonly request: { readonly id: string | null; readonly idempotency_key: string | null };
  readonly data: { readonly object: Exclude<StripeObject, StripeEvent> };
  /** Of another account, where this one is a platform (Connect). */
  readonly account?: string;
}
