import type { App } from '@rollcall/platform/http/server.ts';
import { REGISTRATION_REFUSALS } from '../../common/errors.ts';
import { sendRendered } from '../../http/rendered.ts';
import { ConditionalHeaders, conditional } from '../../http/schemas.ts';
import { representativeOf } from '../domain/instances.ts';
import type { Registration } from '../domain/registration.ts';
import {
  livingInstances,
  lookUpInstance,
  lookUpService,
  type RegistrationsDeps,
  unregisterService,
} from '../domain/registrations.ts';
import {
  InstanceParams,
  InstanceRecord,
  InstancesResponse,
  instanceRecord,
  ServiceParams,
  UnregisterResponse,
} from './registration-schemas.ts';
import { renderInstances } from './rendering.ts';

export interface InstanceRoutesDeps {
  readonly registrations: RegistrationsDeps;
  readonly lastBeatAt: (id: string) => Date | undefined;
}

const tags = ['services'];

/** `/services/{service_name}/instances`, beyond the contract. */
export function instanceRoutes(app: App, { registrations, lastBeatAt }: InstanceRoutesDeps): void {
  const { store } = registrations;
  const record = (registration: Registration, serviceId: string) =>
    instanceRecord(registration, serviceId, lastBeatAt(registration.id));

  app.get(
    '/services/:service_name/instances',
    {
      config: { access: 'read', refusals: ['SERVICE_NOT_FOUND', 'OVERLOADED'] },
      compress: {},
      schema: {
        tags,
        summary: 'List the programs that are registered under a name',
        headers: ConditionalHeaders,
        params: ServiceParams,
        response: conditional(InstancesResponse),
      },
    },
    async (request, reply) => {
      const { service_name } = request.params;
      const { serviceId } = await lookUpService(registrations, service_name);
      const instances = livingInstances(store, service_name).map((each) => record(each, serviceId));
      const answer = { service_name, service_id: serviceId, instances, total: instances.length };
      sendRendered(request, reply, renderInstances(answer));
      // Without it Fastify answers once more, with nothing, while the answer is compressed.
      return reply;
    },
  );

  app.get(
    '/services/:service_name/instances/:instance_id',
    {
      config: { access: 'read', refusals: ['SERVICE_NOT_FOUND', 'OVERLOADED'] },
      schema: {
        tags,
        summary: 'Get one of the programs that are registered under a name',
        params: InstanceParams,
        response: { 200: InstanceRecord },
      },
    },
    async (request) => {
      const { service_name, instance_id } = request.params;
      const found = await lookUpInstance(registrations, { serviceName: service_name, instanceId: instance_id });
      const { serviceId } = representativeOf(store.instancesOf(service_name)) ?? found;
      return record(found, serviceId);
    },
  );

  app.delete(
    '/services/:service_name/instances/:instance_id',
    {
      config: {
        refusals: ['SERVICE_NOT_FOUND', ...REGISTRATION_REFUSALS],
      },
      schema: {
        tags,
        summary: 'Unregister one of the programs that are registered under a name',
        params: InstanceParams,
        response: { 200: UnregisterResponse },
      },
    },
    async (request) => {
      const { service_name, instance_id } = request.params;
      await unregisterService(registrations, { serviceName: service_name, instanceId: instance_id }, request.subject);
      return { message: `Instance '${instance_id}' of '${service_name}' was removed`, service_name };
    },
  );
}
