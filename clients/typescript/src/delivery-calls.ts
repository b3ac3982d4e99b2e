import { type CallOptions, deliverySegment, get, json, post, query, signed, type WebhookOptions } from './api-call.ts';
import type { AcceptedReplay, DeliveryFilter, DeliveryList, DeliveryRecord } from './delivery-types.ts';
import type { Transport } from './transport.ts';

/** The endpoints under `/webhooks/deliveries`. */
export function deliveryCalls(transport: Transport) {
  return {
    /** `GET /webhooks/deliveries`, newest first. */
    listDeliveries: (
      { service_name, state, limit }: DeliveryFilter = {},
      { signal }: CallOptions = {},
    ): Promise<DeliveryList> =>
      json(transport, get(`/webhooks/deliveries${query({ service_name, state, limit })}`, signal)),

    /** `GET /webhooks/deliveries/{id}`. */
    getDelivery: async (id: string, { signal }: CallOptions = {}): Promise<DeliveryRecord> =>
      json(transport, get(`/webhooks/deliveries/${deliverySegment(id)}`, signal)),

    /**
     * `POST /webhooks/deliveries/{id}/replay`: sends it once more, as the same message, to where
     * its channel leads now. One that is on its way stays so.
     */
    replayDelivery: async (id: string, options: WebhookOptions = {}): Promise<AcceptedReplay> => {
      // The body repeats what the path says, so that a signature of it is good for this alone:
      // without, the registry refuses it.
      const request = post(`/webhooks/deliveries/${deliverySegment(id)}/replay`, { delivery_id: id, action: 'replay' });
      return json(transport, signed(request, options));
    },
  };
}
