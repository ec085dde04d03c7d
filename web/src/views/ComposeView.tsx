export function ComposeView() {
  return <main className="empty"><h2>Compose</h2></main>;
}
