// One line on your page: <script src="https://SIZING/static/js/embed.js" data-lang="de" async></script>
// It puts the wizard where the script stands, in a frame as high as its content.
(() => {
  "use strict";

  const script = document.currentScript;
  const origin = new URL(script.src).origin;
  const { lang, theme, accent, page, title } = script.dataset;
  const language = lang === "en" ? "en" : "de";
  const url = new URL(`/embed/${language}/${(page ?? "").replace(/^\/+/, "")}`, origin);
  if (theme) url.searchParams.set("theme", theme);
  if (accent) url.searchParams.set("accent", accent.replace("#", ""));

  const frame = document.createElement("iframe");
  frame.src = url.href;
  frame.title = title ?? (language === "de" ? "vLLM-Auslegung" : "vLLM sizing");
  frame.loading = "lazy";
  frame.allow = "clipboard-write";
  frame.width = "100%";
  frame.height = "800";
  frame.setAttribute("frameborder", "0");
  script.after(frame);

  const LOWEST = 200;
  const HIGHEST = 10000;

  window.addEventListener("message", ({ source, origin: sender, data }) => {
    if (source !== frame.contentWindow || sender !== origin) return;
    if (data?.type === "vllm-sizing:height" && Number.isFinite(data.height)) {
      frame.height = String(Math.min(HIGHEST, Math.max(LOWEST, Math.ceil(data.height))));
    } else if (data?.type === "vllm-sizing:top") {
      frame.scrollIntoView({ block: "start" });
    }
  });
})();
