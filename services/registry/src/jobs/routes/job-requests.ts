import { withRawBody } from '@rollcall/platform/http/raw-body.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { WRITE_REFUSALS } from '../../common/errors.ts';
import { releaseOf } from '../../releases/routes/release-schemas.ts';
import type { AdmissionDeps } from '../../webhooks/domain/call-admission.ts';
import { authorizeCall } from '../../webhooks/domain/webhook-configs.ts';
import { PROOF_REFUSALS, proofOf } from '../../webhooks/routes/request-proof.ts';
import { SignatureHeaders } from '../../webhooks/routes/schemas.ts';
import { type DeliveryRequestsDeps, requestDeployment, requestRollback } from '../domain/job-requests.ts';
import { DeployBody, JobResponse, RollbackBody, strategyNamed } from './request-schemas.ts';

export interface JobRequestRoutesDeps extends DeliveryRequestsDeps, AdmissionDeps {}

const tags = ['webhooks'];
const refusals = ['INVALID_SERVICE_NAME', 'JOB_CONFLICT', ...WRITE_REFUSALS, ...PROOF_REFUSALS] as const;

/** Contract 1, `/webhooks/deploy` and `/webhooks/rollback`: what makes a job. */
export function jobRequestRoutes(app: App, deps: JobRequestRoutesDeps): void {
  withRawBody(app, (signed) => {
    deployRoute(signed, deps);
    rollbackRoute(signed, deps);
  });
}

function deployRoute(app: App, deps: JobRequestRoutesDeps): void {
  app.post(
    '/webhooks/deploy',
    {
      config: { refusals },
      schema: {
        tags,
        summary: 'Deploy a version',
        headers: SignatureHeaders,
        body: DeployBody,
        response: { 200: JobResponse },
      },
    },
    async (request) => {
      const { service_name, version, strategy } = request.body;
      const admission = await authorizeCall(deps, service_name, proofOf(request, request.body));
      const input = { release: releaseOf(request.body), strategy: strategyNamed(strategy), subject: request.subject };
      const job_id = await admission.carryOut((at) => requestDeployment(deps, { ...input, at }));
      const message = `Deployment of '${service_name}' version ${version} was requested`;
      return { status: 'accepted' as const, job_id, message, service_name, version };
    },
  );
}

function rollbackRoute(app: App, deps: JobRequestRoutesDeps): void {
  app.post(
    '/webhooks/rollback',
    {
      config: { refusals: ['RELEASE_NOT_FOUND', ...refusals] },
      schema: {
        tags,
        summary: 'Roll back to a version that was announced or deployed before',
        headers: SignatureHeaders,
        body: RollbackBody,
        response: { 200: JobResponse },
      },
    },
    async (request) => {
      const { service_name, version, strategy, immediate = false } = request.body;
      const admission = await authorizeCall(deps, service_name, proofOf(request, request.body));
      const input = {
        serviceName: service_name,
        version,
        strategy: strategyNamed(strategy),
        immediate,
        subject: request.subject,
      };
      const job_id = await admission.carryOut((at) => requestRollback(deps, { ...input, at }));
      const message = `Rollback of '${service_name}' to version ${version} was requested`;
      return { status: 'accepted' as const, job_id, message, service_name, version };
    },
  );
}
