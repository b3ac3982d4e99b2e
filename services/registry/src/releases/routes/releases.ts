import { withRawBody } from '@rollcall/platform/http/raw-body.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { WRITE_REFUSALS } from '../../common/errors.ts';
import {
  type AutoDeployDeps,
  deployAutomatically,
  deploysAutomatically,
} from '../../jobs/domain/automatic-deployment.ts';
import type { AdmissionDeps } from '../../webhooks/domain/call-admission.ts';
import { authorizeCall } from '../../webhooks/domain/webhook-configs.ts';
import { PROOF_REFUSALS, proofOf } from '../../webhooks/routes/request-proof.ts';
import { SignatureHeaders } from '../../webhooks/routes/schemas.ts';
import type { ReleaseStore } from '../domain/release.ts';
import { checkRelease } from '../domain/release-input.ts';
import { checkForUpdate } from '../domain/releases.ts';
import { AcceptedResponse, CheckUpdatesBody, CheckUpdatesResponse, releaseOf, UpdateBody } from './release-schemas.ts';

export interface ReleaseRoutesDeps extends AutoDeployDeps, AdmissionDeps {
  readonly releases: ReleaseStore;
}

const tags = ['webhooks'];

/** Contract 1, `/webhooks/update` and `/webhooks/check-updates`: versions that can be deployed. */
export function releaseRoutes(app: App, deps: ReleaseRoutesDeps): void {
  checkUpdatesRoute(app, deps);
  withRawBody(app, (signed) => updateRoute(signed, deps));
}

function updateRoute(app: App, deps: ReleaseRoutesDeps): void {
  app.post(
    '/webhooks/update',
    {
      config: {
        refusals: ['INVALID_SERVICE_NAME', 'JOB_CONFLICT', ...WRITE_REFUSALS, ...PROOF_REFUSALS],
      },
      schema: {
        tags,
        summary: 'Announce a version that can be deployed',
        headers: SignatureHeaders,
        body: UpdateBody,
        response: { 200: AcceptedResponse },
      },
    },
    async (request) => {
      const { service_name, version } = request.body;
      const isDeployed = await deploysAutomatically(deps, { serviceName: service_name, version });
      const proof = { ...proofOf(request, request.body), isHarmless: !isDeployed };
      const admission = await authorizeCall(deps, service_name, proof);
      const job_id = await admission.carryOut(async (at) => {
        const release = releaseOf(request.body);
        checkRelease(release);
        await deps.releases.record(release);
        return isDeployed ? deployAutomatically(deps, { release, at }) : undefined;
      });
      const deployed = job_id === undefined ? '' : ' and is deployed by itself if it is newer than what runs';
      const message = `Update of '${service_name}' to version ${version} was announced${deployed}`;
      const accepted = { status: 'accepted' as const, message, service_name, version };
      return job_id === undefined ? accepted : { ...accepted, job_id };
    },
  );
}

function checkUpdatesRoute(app: App, deps: ReleaseRoutesDeps): void {
  app.post(
    '/webhooks/check-updates',
    {
      config: { refusals: ['INVALID_SERVICE_NAME', 'SERVICE_NOT_FOUND', 'DATABASE_UNAVAILABLE', 'OVERLOADED'] },
      schema: {
        tags,
        summary: 'Compare the version that runs with the announced ones',
        body: CheckUpdatesBody,
        response: { 200: CheckUpdatesResponse },
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
