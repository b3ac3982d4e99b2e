import { httpUrlFault, httpUrlRules, portPattern, URL_MAX_LENGTH } from '@rollcall/platform/service-address.ts';
import { isLongerThan } from '@rollcall/platform/text-rules.ts';
import { RegistryError } from '../../common/errors.ts';
import { checkServiceName, versionFault } from '../../common/validation.ts';
import type { Artifact, Release } from './release.ts';

const sha256 = 'sha256:[0-9a-fA-F]{64}';
const checksumPattern = `^(?:${sha256}|sha512:[0-9a-fA-F]{128})$`;
const CHECKSUM = new RegExp(checksumPattern);
const imageHost = String.raw`([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(:${portPattern})?/`;
const imagePart = '[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*';
const imageTag = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}';
/** The grammar of image references of github.com/distribution/reference, as the custom resource has it. */
const imagePattern = `^(${imageHost})?${imagePart}(/${imagePart})*(:${imageTag})?(@sha(256:[0-9a-f]{64}|512:[0-9a-f]{128}))?$`;
const IMAGE_REFERENCE = new RegExp(imagePattern);

/** Of an artifact in the members of a body, as JSON Schema has it: the same as {@link checkRelease} asks for. */
export const artifactRules = {
  if: { properties: { artifact_type: { const: 'binary' } }, required: ['artifact_type'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: {
    properties: {
      artifact_url: { ...httpUrlRules, pattern: httpUrlRules.pattern.replace('[Ss]?', '[Ss]') },
      checksum: { pattern: checksumPattern },
    },
    required: ['checksum'],
  },
  else: {
    properties: {
      artifact_url: { minLength: 1, maxLength: URL_MAX_LENGTH, pattern: imagePattern },
      checksum: { pattern: `^(?:${sha256})?$` },
    },
  },
};

/**
 * Checks that a release has a legal name, version and artifact. The rules are no looser than those
 * of the custom resource: what passes here can be delivered.
 *
 * @throws RegistryError INVALID_SERVICE_NAME, INVALID_REQUEST.
 */
export function checkRelease({ serviceName, version, artifact }: Release): void {
  checkServiceName(serviceName);
  checkVersion(version);
  const fault = artifactFault(artifact);
  if (fault !== undefined) throw new RegistryError('INVALID_REQUEST', fault);
}

/** Whether the release has a version and an artifact that {@link checkRelease} accepts. */
export function isDeliverable({ version, artifact }: Release): boolean {
  return versionFault(version) === undefined && artifactFault(artifact) === undefined;
}

/** @throws RegistryError INVALID_REQUEST, saying which rule is broken. */
export function checkVersion(version: string): void {
  const fault = versionFault(version);
  if (fault !== undefined) throw new RegistryError('INVALID_REQUEST', `version must ${fault}`);
}

function artifactFault({ url, type, checksum }: Artifact): string | undefined {
  if (url === '') return 'artifact_url must not be empty';
  if (isLongerThan(url, URL_MAX_LENGTH)) return `artifact_url must have at most ${URL_MAX_LENGTH} characters`;
  if (checksum !== undefined && !CHECKSUM.test(checksum)) {
    return "checksum must be 'sha256:' and 64 hex digits, or 'sha512:' and 128 hex digits";
  }
  return type === 'image' ? imageFault(url, checksum) : binaryFault(url, checksum);
}

function imageFault(url: string, checksum: string | undefined): string | undefined {
  if (!IMAGE_REFERENCE.test(url)) {
    return 'artifact_url of type image must be an image reference such as registry.example.com/shop:1.2.0';
  }
  if (checksum !== undefined && !checksum.startsWith('sha256:')) return 'checksum of an image must be a sha256 digest';
  return undefined;
}

function binaryFault(url: string, checksum: string | undefined): string | undefined {
  const fault = httpUrlFault(url);
  if (fault !== undefined) return `artifact_url ${fault}`;
  if (!/^https:/i.test(url)) return 'artifact_url of type binary must be an https URL';
  if (checksum === undefined) return 'checksum is required for artifact_type binary';
  return undefined;
}
