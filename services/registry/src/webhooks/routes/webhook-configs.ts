import type { App } from '@rollcall/platform/http/server.ts';
import type { Static } from 'typebox';
import { withRawBody } from '../../http/raw-body.ts';
import { ErrorResponse } from '../../http/schemas.ts';
import { type AutoDeployDeps, deployAutomatically } from '../../jobs/domain/automatic-deployment.ts';
import {
  type DeliveryRequestsDeps,
  parseRelease,
  type ReleaseInput,
  requestDeployment,
  requestRollback,
} from '../../jobs/domain/job-requests.ts';
import { type NotifyDeps, notify } from '../../notifications/domain/sending.ts';
import { announceRelease, checkForUpdate } from '../../releases/domain/releases.ts';
import type { AdmissionDeps } from '../domain/call-admission.ts';
import {
  ALL_SERVICES,
  authorizeCall,
  configureWebhooks,
  describeConfig,
  type WebhookConfigsDeps,
} from '../domain/webhook-configs.ts';
import { proofOf } from './request-proof.ts';
import {
  AcceptedResponse,
  CheckUpdatesBody,
  CheckUpdatesResponse,
  ConfigBody,
  ConfigQuery,
  ConfigResponse,
  ConfiguredResponse,
  configRecord,
  DeployBody,
  JobResponse,
  NotifyBody,
  NotifyResponse,
  RollbackBody,
  SignatureHeaders,
  UpdateBody,
} from './schemas.ts';

export interface WebhookRoutesDeps extends NotifyDeps, AutoDeployDeps, DeliveryRequestsDeps, AdmissionDeps {
  readonly releases: DeliveryRequestsDeps['releases'];
  readonly jobs: DeliveryRequestsDeps['jobs'] & AutoDeployDeps['jobs'];
}

const tags = ['webhooks'];
const errors = { '4xx': ErrorResponse, '5xx': ErrorResponse };

/** Contract 1, `/webhooks`, but for what services report of themselves. */
export function webhookRoutes(app: App, deps: WebhookRoutesDeps): void {
  checkUpdatesRoute(app, deps);
  notifyRoute(app, deps);
  readConfigRoute(app, deps);
  withRawBody(app, (signed) => {
    updateRoute(signed, deps);
    deployRoute(signed, deps);
    rollbackRoute(signed, deps);
    writeConfigRoute(signed, deps);
  });
}

function updateRoute(app: App, deps: WebhookRoutesDeps): void {
  app.post(
    '/webhooks/update',
    {
      schema: {
        tags,
        summary: 'Announce a version that can be deployed',
        headers: SignatureHeaders,
        body: UpdateBody,
        response: { 200: AcceptedResponse, ...errors },
      },
    },
    async (request) => {
      const { service_name, version } = request.body;
      const admission = await authorizeCall(deps, service_name, proofOf(request, request.body, 'update'));
      const job_id = await admission.carryOut(async (at) => {
        const release = parseRelease(releaseInput(request.body));
        await announceRelease(deps, release);
        return deployAutomatically(deps, { release, at });
      });
      const deployed = job_id === undefined ? '' : ' and is deployed by itself if it is newer than what runs';
      const message = `Update of '${service_name}' to version ${version} was announced${deployed}`;
      const accepted = { status: 'accepted' as const, message, service_name, version };
      return job_id === undefined ? accepted : { ...accepted, job_id };
    },
  );
}

function deployRoute(app: App, deps: WebhookRoutesDeps): void {
  app.post(
    '/webhooks/deploy',
    {
      schema: {
        tags,
        summary: 'Deploy a version',
        headers: SignatureHeaders,
        body: DeployBody,
        response: { 200: JobResponse, ...errors },
      },
    },
    async (request) => {
      const { service_name, version, strategy } = request.body;
      const admission = await authorizeCall(deps, service_name, proofOf(request, request.body, 'deploy'));
      const input = { ...releaseInput(request.body), strategy, subject: request.subject };
      const job_id = await admission.carryOut((at) => requestDeployment(deps, { ...input, at }));
      const message = `Deployment of '${service_name}' version ${version} was requested`;
      return { status: 'accepted' as const, job_id, message, service_name, version };
    },
  );
}

function rollbackRoute(app: App, deps: WebhookRoutesDeps): void {
  app.post(
    '/webhooks/rollback',
    {
      schema: {
        tags,
        summary: 'Roll back to a version that was announced or deployed before',
        headers: SignatureHeaders,
        body: RollbackBody,
        response: { 200: JobResponse, ...errors },
      },
    },
    async (request) => {
      const { service_name, version } = request.body;
      const admission = await authorizeCall(deps, service_name, proofOf(request, request.body, 'rollback'));
      const input = { serviceName: service_name, version, subject: request.subject };
      const job_id = await admission.carryOut((at) => requestRollback(deps, { ...input, at }));
      const message = `Rollback of '${service_name}' to version ${version} was requested`;
      return { status: 'accepted' as const, job_id, message, service_name, version };
    },
  );
}

function checkUpdatesRoute(app: App, deps: WebhookRoutesDeps): void {
  app.post(
    '/webhooks/check-updates',
    {
      schema: {
        tags,
        summary: 'Compare the version that runs with the announced ones',
        body: CheckUpdatesBody,
        response: { 200: CheckUpdatesResponse, ...errors },
      },
    },
    async (request) => {
      const { service_name } = request.body;
      const check = await checkForUpdate(deps, service_name);
      return {
        status: 'checked' as const,
        service_name,
        current_version: check.currentVersion,
        latest_version: check.latestVersion,
        update_available: check.updateAvailable,
      };
    },
  );
}

function notifyRoute(app: App, deps: WebhookRoutesDeps): void {
  app.post(
    '/webhooks/notify',
    {
      schema: {
        tags,
        summary: 'Send a notification to a configured channel',
        body: NotifyBody,
        response: { 200: NotifyResponse, ...errors },
      },
    },
    async (request) => {
      const { service_name, channel, message, severity = 'info' } = request.body;
      await notify(deps, { serviceName: service_name, channel, message, severity });
      return { status: 'sent' as const, message: `Notification of '${service_name}' is on its way to '${channel}'` };
    },
  );
}

function writeConfigRoute(app: App, deps: WebhookRoutesDeps): void {
  app.post(
    '/webhooks/config',
    {
      schema: {
        tags,
        summary: 'Set the endpoints and the secret of a service, or of all',
        headers: SignatureHeaders,
        body: ConfigBody,
        response: { 200: ConfiguredResponse, ...errors },
      },
    },
    async (request) => {
      const { service_name = ALL_SERVICES, endpoints, secret } = request.body;
      const proof = proofOf(request, request.body, 'config');
      await configureWebhooks(deps, { serviceName: service_name, endpoints, secret }, proof);
      return { status: 'configured' as const, message: `Webhooks of '${service_name}' were configured` };
    },
  );
}

function readConfigRoute(app: App, deps: WebhookConfigsDeps): void {
  app.get(
    '/webhooks/config',
    {
      schema: {
        tags,
        summary: 'Get the webhook configuration of a service, or the global one; never the secret',
        querystring: ConfigQuery,
        response: { 200: ConfigResponse, ...errors },
      },
    },
    async (request) => configRecord(await describeConfig(deps, request.query.service_name ?? ALL_SERVICES)),
  );
}

function releaseInput({
  service_name,
  version,
  artifact_url,
  artifact_type,
  checksum,
}: Static<typeof UpdateBody>): ReleaseInput {
  return {
    serviceName: service_name,
    version,
    artifactUrl: artifact_url,
    artifactType: artifact_type,
    checksum,
  };
}
