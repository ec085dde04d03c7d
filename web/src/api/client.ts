// Every request of the page. Types come from the server's own description; a write carries its key and the sequence last seen.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Execution = Schemas["ExecutionOut"];
export type Executions = Schemas["ExecutionsOut"];
export type Detail = Schemas["DetailOut"];
export type LiveState = Schemas["LiveState"];
export type LogEvent = Schemas["LogEvent"];
export type Round = Schemas["RoundOut"];
export type Turn = Schemas["TurnOut"];
export type Budget = Schemas["BudgetOut"];
export type Guard = Schemas["GuardOut"];
export type Call = Schemas["CallOut"];
export type LoopDoc = Schemas["LoopOut"];
export type Finding = Schemas["FindingOut"];
export type Machine = Schemas["MachineOut"];
export type Acted = Schemas["ActedOut"];

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    readonly title: string,
    detail: string,
    readonly body: Record<string, unknown>,
  ) {
    super(detail);
  }
}

const http = createClient<paths>({ baseUrl: "/", credentials: "same-origin" });

/** The data, or the problem thrown with the server's own words. */
async function given<T>(asked: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  let found: { data?: T; error?: unknown; response: Response };
  try {
    found = await asked;
  } catch {
    throw new Problem(0, "unreachable", "No connection", "The studio does not answer. Is treadle studio still running?", {});
  }
  if (found.response.ok) return found.data as T;
  const body = (typeof found.error === "object" && found.error ? found.error : {}) as Record<string, unknown>;
  throw new Problem(
    found.response.status,
    String(body["type"] ?? "").replace("urn:treadle:", ""),
    String(body["title"] ?? "Refused"),
    String(body["detail"] ?? found.response.statusText),
    body,
  );
}

const at = (execution_id: string) => ({ params: { path: { execution_id } } });

export const api = {
  studio: () => given(http.GET("/api/studio")),
  machine: () => given(http.GET("/api/machine")),
  checkEdge: (source: string, target: string) => given(http.POST("/api/machine/check", { body: { source, target } })),
  executions: (text = "", status = "") => given(http.GET("/api/executions", { params: { query: { text, status } } })),
  detail: (id: string) => given(http.GET("/api/executions/{execution_id}", at(id))),
  log: (id: string, query: { after?: number; to?: number; limit?: number; tail?: number }) =>
    given(http.GET("/api/executions/{execution_id}/log", { params: { path: { execution_id: id }, query } })),
  rounds: (id: string) => given(http.GET("/api/executions/{execution_id}/rounds", at(id))),
  turns: (id: string) => given(http.GET("/api/executions/{execution_id}/turns", at(id))),
  turn: (id: string, number: number) =>
    given(http.GET("/api/executions/{execution_id}/turns/{number}", { params: { path: { execution_id: id, number } } })),
  output: (id: string, call_id: string, query: { seq?: number; start?: number; end?: number } = {}) =>
    given(
      http.GET("/api/executions/{execution_id}/outputs/{call_id}", { params: { path: { execution_id: id, call_id }, query } }),
    ),
  window: (id: string) => given(http.GET("/api/executions/{execution_id}/window", at(id))),
  map: (id: string) => given(http.GET("/api/executions/{execution_id}/map", at(id))),
  leases: (id: string) => given(http.GET("/api/executions/{execution_id}/leases", at(id))),
  comparison: (id: string, other: string) =>
    given(http.GET("/api/executions/{execution_id}/compare/{other}", { params: { path: { execution_id: id, other } } })),
  sinks: () => given(http.GET("/api/sinks")),
  setSink: (name: string, attached: boolean) => given(http.PUT("/api/sinks/{name}", { params: { path: { name } }, body: { attached } })),
  loops: () => given(http.GET("/api/loops")),
  loop: (name: string) => given(http.GET("/api/loops/{name}", { params: { path: { name } } })),
  validate: (body: Schemas["ValidateIn"]) => given(http.POST("/api/loops/validate", { body })),
  saveLoop: (name: string, body: Schemas["LoopIn"]) => given(http.PUT("/api/loops/{name}", { params: { path: { name } }, body })),
};

export type Wish = "pause" | "step" | "resume" | "retry" | "cancel" | "answer" | "approve" | "reject" | "extend" | "plan" | "compact" | "leases" | "pins" | "forks" | `plan/steps/${string}`;

/** Asks something of an execution. `seen`: the last record that the person could see when deciding. */
export function steer(id: string, wish: Wish, seen: number, more: Record<string, unknown> = {}): Promise<Acted> {
  const path = wish === "retry" ? "resume" : wish;
  const body = { seen, actor: "", ...(wish === "retry" ? { retry_incomplete: true } : {}), ...more };
  const url = `/api/executions/{execution_id}/${path}` as "/api/executions/{execution_id}/pause";
  return given(http.POST(url, { ...at(id), body, headers: { "Idempotency-Key": crypto.randomUUID() } } as never));
}

/** Starts a loop. A key of the caller's makes a second tap harmless. */
export function start(body: { loop?: string; text?: string; task?: string }, key: string): Promise<Acted> {
  const whole = { loop: "", text: "", task: "", ...body };
  return given(http.POST("/api/executions", { body: whole, headers: { "Idempotency-Key": key } } as never));
}
