// What a page gains with JavaScript. Everything works without it.
(() => {
  "use strict";

  const announce = (text) => {
    document.getElementById("status").textContent = text;
  };

  // --- copy buttons: hidden in the HTML, shown where the browser can copy --------------------
  const showCopyButtons = (root) => {
    if (!navigator.clipboard) return;
    for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
  };

  const copy = async (button) => {
    const source = document.getElementById(button.dataset.copy);
    const label = button.textContent;
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    button.textContent = button.dataset.copied;
    announce(button.dataset.copied);
    setTimeout(() => { button.textContent = label; }, 2000);
  };

  // --- the live result ----------------------------------------------------------------------
  const connection = () => document.getElementById("connection");

  const setStale = (stale) => {
    connection().hidden = !stale;
    document.body.classList.toggle("is-stale", stale);
  };

  // After an answer the server's reading counts for every field but the one in use.
  const followAnswer = (form) => {
    document.title = form.dataset.title;
    for (const control of form.elements) {
      if (control === document.activeElement) continue;
      if (control instanceof HTMLSelectElement) {
        for (const option of control.options) option.selected = option.defaultSelected;
      } else if (control.type === "radio" || control.type === "checkbox") {
        control.checked = control.defaultChecked;
      } else if (control instanceof HTMLInputElement) {
        control.value = control.closest("[data-value]")?.dataset.value ?? control.defaultValue;
      }
    }
  };

  // The server writes the address of the answer. A choice adds a history entry, typing replaces it.
  document.addEventListener("htmx:config:request", ({ detail: { ctx } }) => {
    if (ctx.sourceEvent?.type === "input") ctx.request.headers["Sizing-Typed"] = "true";
  });

  document.addEventListener("htmx:after:swap", () => {
    setStale(false);
    enhance(document);
    const form = document.querySelector("form[data-live]");
    if (form) followAnswer(form);
    const news = document.querySelector("[data-announce]");
    if (news) announce(news.textContent.replace(/\s+/g, " ").trim());
  });
  document.addEventListener("htmx:error", () => setStale(true));
  document.addEventListener("htmx:response:error", ({ detail: { ctx } }) => {
    if (ctx.response.status >= 500) setStale(true);
  });

  document.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-copy], [data-retry], [data-print]");
    if (!button) return;
    if ("copy" in button.dataset) copy(button);
    if ("retry" in button.dataset) document.querySelector("form[data-live]")?.requestSubmit();
    if ("print" in button.dataset) window.print();
  });

  // --- type-to-search: a text field with a datalist becomes a combobox -------------------------
  const words = (text) => text.toLowerCase().split(/[\s/_.-]+/).filter(Boolean);

  const matches = (option, wanted) => {
    const text = `${option.value} ${option.label}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  };

  const makeCombobox = (input) => {
    const options = [...input.list.options];
    const list = document.createElement("ul");
    list.className = "combobox__list";
    list.id = `${input.id}-options`;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", input.labels[0].textContent);
    list.hidden = true;
    input.removeAttribute("list");
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-controls", list.id);
    input.setAttribute("aria-expanded", "false");
    input.parentElement.append(list);

    let active = -1;
    const activate = (index) => {
      active = index;
      [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === index)));
      const item = list.children[index];
      if (item) {
        input.setAttribute("aria-activedescendant", item.id);
        item.scrollIntoView({ block: "nearest" });
      } else {
        input.removeAttribute("aria-activedescendant");
      }
    };
    const close = () => {
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      activate(-1);
    };
    const open = (wanted) => {
      const found = options.filter((option) => matches(option, wanted));
      list.replaceChildren(...found.map((option, index) => {
        const item = document.createElement("li");
        item.id = `${list.id}-${index}`;
        item.setAttribute("role", "option");
        item.dataset.value = option.value;
        const detail = document.createElement("small");
        detail.textContent = option.label;
        item.append(option.value, detail);
        return item;
      }));
      list.hidden = found.length === 0;
      input.setAttribute("aria-expanded", String(!list.hidden));
      activate(-1);
    };
    const choose = (item) => {
      input.value = item.dataset.value;
      close();
      input.dispatchEvent(new Event("change", { bubbles: true }));
    };

    input.addEventListener("input", () => open(words(input.value)));
    input.addEventListener("click", () => { if (list.hidden) { input.select(); open([]); } });
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (event) => {
      const last = list.children.length - 1;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        if (list.hidden) return open([]);
        const step = event.key === "ArrowDown" ? 1 : -1;
        activate(active + step > last ? 0 : active + step < 0 ? last : active + step);
      } else if (event.key === "Enter" && !list.hidden && list.children[Math.max(active, 0)]) {
        event.preventDefault();
        choose(list.children[Math.max(active, 0)]);
      } else if (event.key === "Escape" && !list.hidden) {
        event.preventDefault();
        close();
      }
    });
    // mousedown, not click: the field must not lose the focus before
    list.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const item = event.target.closest("li");
      if (item) choose(item);
    });
  };

  const enhance = (root) => {
    showCopyButtons(root);
    for (const input of root.querySelectorAll("input[data-combobox][list]")) makeCombobox(input);
  };
  enhance(document);
})();
