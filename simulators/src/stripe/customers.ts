import { Type } from 'typebox';
import type { Call, Calls } from './calls.ts';
import { attach, detach, getMethod } from './methods.ts';
import type { ApiList, Customer, PaymentMethod } from './objects.ts';
import {
  Expand,
  ListParameters,
  MetadataParameter,
  metadataOf,
  Parameters,
  readParameters,
  Text,
} from './parameters.ts';
import { pageOf } from './store.ts';

const NONE = Parameters({ expand: Expand });
const CustomerParameters = Parameters({
  email: Type.Optional(Text),
  name: Type.Optional(Text),
  description: Type.Optional(Text),
  metadata: Type.Optional(MetadataParameter),
  invoice_settings: Type.Optional(Parameters({ default_payment_method: Type.Optional(Text) })),
  expand: Expand,
});

/** Customers under `/v1`. */
export function addCustomers(calls: Calls): void {
  const path = '/v1/customers';
  calls.on('POST', path, ({ parameters, store, emit }) => {
    const { expand: _expand, ...asked } = readParameters(CustomerParameters, parameters);
    const customer = store.put(customerOf(asked, store.base('customer', 'cus')));
    emit('customer.created', customer);
    return customer;
  });
  calls.on('POST', `${path}/:id`, ({ id, parameters, store, emit }) => {
    const { expand: _expand, ...asked } = readParameters(CustomerParameters, parameters);
    const known = store.get('customer', id);
    const customer = store.put({ ...customerOf({ ...known, ...asked }, known) });
    emit('customer.updated', customer);
    return customer;
  });
  calls.on('GET', `${path}/:id`, ({ id, parameters, store }) => {
    readParameters(NONE, parameters);
    return store.get('customer', id);
  });
  calls.on('DELETE', `${path}/:id`, ({ id, store, emit }) => {
    const customer = store.get('customer', id);
    for (const method of store.all('payment_method'))
      if (method.customer === id) store.put({ ...method, customer: null });
    store.delete(id);
    emit('customer.deleted', customer);
    return { id, object: 'customer', deleted: true };
  });
  calls.on('GET', path, ({ parameters, path, store }) => {
    const query = readParameters(ListParameters({ email: Type.Optional(Text) }), parameters);
    const isWanted = ({ email }: Customer): boolean => query.email === undefined || email === query.email;
    return pageOf(store.all('customer').filter(isWanted), path, query);
  });
}

/** Stored cards under `/v1`. */
export function addMethods(calls: Calls): void {
  calls.on('GET', '/v1/payment_methods/:id', ({ id, store }) => store.get('payment_method', id));
  calls.on('POST', '/v1/payment_methods/:id/attach', (call) => {
    const { customer } = readParameters(Parameters({ customer: Text, expand: Expand }), call.parameters);
    return attach(call, getMethod(call, call.id, 'id'), call.store.get('customer', customer, 'customer'));
  });
  calls.on('POST', '/v1/payment_methods/:id/detach', (call) => detach(call, call.store.get('payment_method', call.id)));
  calls.on('GET', '/v1/payment_methods', listMethods);
  calls.on('GET', '/v1/customers/:id/payment_methods', listMethods);
  calls.on('GET', '/v1/setup_intents/:id', ({ id, store }) => store.get('setup_intent', id));
}

/** Of the customer in the path, or else in the query. */
function listMethods({ store, path, parameters, id }: Call): ApiList<PaymentMethod> {
  const type = Type.Optional(Type.Literal('card'));
  const query = readParameters(ListParameters({ customer: Type.Optional(Text), type }), parameters);
  const customer = id === '' ? query.customer : store.get('customer', id).id;
  const methods = store.all('payment_method').filter((method) => method.customer === (customer ?? null));
  return pageOf(methods, path, query);
}

function customerOf(
  asked: Pick<Partial<Customer>, 'email' | 'name' | 'description' | 'metadata'> & {
    readonly invoice_settings?: { readonly default_payment_method?: string | null };
  },
  base: Pick<Customer, 'id' | 'object' | 'created' | 'livemode'>,
): Customer {
  const { email = null, name = null, description = null, metadata } = asked;
  const { id, object, created, livemode } = base;
  const default_payment_method = asked.invoice_settings?.default_payment_method ?? null;
  const settings = { invoice_settings: { default_payment_method } };
  return { id, object, created, livemode, email, name, description, metadata: metadataOf(metadata), ...settings };
}
