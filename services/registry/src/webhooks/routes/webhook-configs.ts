import { withRawBody } from '@rollcall/platform/http/raw-body.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { WRITE_REFUSALS } from '../../common/errors.ts';
import type { AdmissionDeps } from '../domain/call-admission.ts';
import { ALL_SERVICES, configureWebhooks, describeConfig, type WebhookConfigsDeps } from '../domain/webhook-configs.ts';
import { PROOF_REFUSALS, proofOf } from './request-proof.ts';
import {
  ConfigBody,
  ConfigQuery,
  ConfigResponse,
  ConfiguredResponse,
  configRecord,
  SignatureHeaders,
} from './schemas.ts';

const tags = ['webhooks'];

/** Contract 1, `/webhooks/config`: where notifications go, and the secret that proves calls. */
export function webhookConfigRoutes(app: App, deps: AdmissionDeps): void {
  readConfigRoute(app, deps);
  withRawBody(app, (signed) => writeConfigRoute(signed, deps));
}

function writeConfigRoute(app: App, deps: AdmissionDeps): void {
  app.post(
    '/webhooks/config',
    {
      config: {
        refusals: ['INVALID_SERVICE_NAME', 'CONTENTION', ...WRITE_REFUSALS, ...PROOF_REFUSALS],
      },
      schema: {
        tags,
        summary: 'Set the endpoints and the secret of a service, or of all',
        headers: SignatureHeaders,
        body: ConfigBody,
        response: { 200: ConfiguredResponse },
      },
    },
    async (request) => {
      const { service_name = ALL_SERVICES, endpoints, secret } = request.body;
      const proof = proofOf(request, request.body);
      await configureWebhooks(deps, { serviceName: service_name, endpoints, secret }, proof);
      return { status: 'configured' as const, message: `Webhooks of '${service_name}' were configured` };
    },
  );
}

function readConfigRoute(app: App, deps: WebhookConfigsDeps): void {
  app.get(
    '/webhooks/config',
    {
      config: { refusals: ['INVALID_SERVICE_NAME', 'CONFIG_NOT_FOUND'] },
      schema: {
        tags,
        summary: 'Get the webhook configuration of a service, or the global one; never the secret',
        querystring: ConfigQuery,
        response: { 200: ConfigResponse },
      },
    },
    async (request) => configRecord(await describeConfig(deps, request.query.service_name ?? ALL_SERVICES)),
  );
}
