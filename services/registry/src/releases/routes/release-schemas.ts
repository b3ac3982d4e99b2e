import { documented } from '@rollcall/platform/http/documented.ts';
import { type Static, Type } from 'typebox';
import { versionRules } from '../../common/validation.ts';
import { ServiceName } from '../../http/schemas.ts';
import { Message, Secret } from '../../webhooks/routes/schemas.ts';
import type { Release } from '../domain/release.ts';
import { artifactRules } from '../domain/release-input.ts';

export const Version = Type.String({
  description: "1 to 128 characters without white space, invisible and control characters and '/', not '.' or '..'",
  ...documented(versionRules),
});

/** What the bodies of `update` and of `deploy` have in common. */
export const release = {
  service_name: ServiceName,
  version: Version,
  artifact_url: Type.String({ description: 'A container image reference, or the https URL of a binary' }),
  artifact_type: Type.Optional(Type.Enum(['image', 'binary'], { default: 'image' })),
  checksum: Type.Optional(
    Type.String({ description: '<algorithm>:<hex digest>, sha256 or sha512; required for a binary' }),
  ),
  webhook_secret: Type.Optional(Secret),
  secret: Type.Optional(Secret),
};

export const UpdateBody = Type.Object(release, documented(artifactRules));

export const AcceptedResponse = Type.Object({
  status: Type.Literal('accepted'),
  message: Message,
  service_name: ServiceName,
  version: Version,
  job_id: Type.Optional(Type.String({ description: 'Of the job that autoDeploy of the policy made of it' })),
});

export const CheckUpdatesBody = Type.Object({ service_name: ServiceName });

export const CheckUpdatesResponse = Type.Object({
  status: Type.Literal('checked'),
  service_name: ServiceName,
  current_version: Type.String({ description: 'Empty when it is not known' }),
  latest_version: Type.String({ description: 'Empty when none was announced' }),
  update_available: Type.Boolean(),
});

/** The release that a body describes; an empty checksum counts as absent. */
export function releaseOf(body: Static<typeof UpdateBody>): Release {
  const { service_name: serviceName, version, artifact_url: url, artifact_type: type = 'image', checksum = '' } = body;
  return { serviceName, version, artifact: { url, type, checksum: checksum === '' ? undefined : checksum } };
}
