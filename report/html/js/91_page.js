// The page: sections, their figures and tables, themes, keys. Texts of users' files are set as text
// nodes alone, never as markup.
(function () {
  'use strict';
  if (typeof document === 'undefined') {
    return;
  }
  var f = Report.format;
  var kSections = [
    ['headline', 'At a glance'], ['time', 'Where the time goes'], ['whatif', 'Stragglers: who, and what mending brings'], ['timeline', 'Timeline'],
    ['pipeline', 'Pipeline'], ['fabric', 'Fabric'], ['distribution', 'Distributions'], ['accuracy', 'Accuracy'],
    ['plan', 'Plans'], ['sweep', 'Sweep'], ['goodput', 'Weeks of training'], ['memory', 'Memory'], ['roofline', 'Roofline'], ['runs', 'Two runs side by side'], ['inputs', 'Inputs and commands']
  ];
  var kPaper = 680;  // pixels between the margins of A4 and letter
  var charts = [];  // {entry, element, chart, state}
  var dark = false;

  function make(tag, attributes, children) {
    var element = document.createElement(tag);
    Object.keys(attributes || {}).forEach(function (name) {
      if (name === 'text') {
        element.textContent = attributes.text;
      } else if (name === 'on') {
        Object.keys(attributes.on).forEach(function (event) { element.addEventListener(event, attributes.on[event]); });
      } else {
        element.setAttribute(name, attributes[name]);
      }
    });
    (children || []).forEach(function (child) {
      if (child) {
        element.appendChild(typeof child === 'string' ? document.createTextNode(child) : child);
      }
    });
    return element;
  }
  Report.make = make;

  function is_number(text) { return /^[<−+\-–]?[\d\u202f.]*\d?(\u202f.*|×)?$/.test(String(text)); }

  function table_of(table) {
    var kMost = 500;
    var numeric = table.head.map(function (_, i) {
      return table.rows.length > 0 && table.rows.every(function (row) { return row[i] === '' || row[i] === undefined || is_number(row[i]); });
    });
    return make('div', {'class': 'scroll', tabindex: '0', role: 'region', 'aria-label': 'table'}, [make('table', {}, [
      make('thead', {}, [make('tr', {}, table.head.map(function (text, i) { return make('th', {scope: 'col', 'class': numeric[i] ? 'number' : '', text: text}); }))]),
      make('tbody', {}, table.rows.slice(0, kMost).map(function (row) {
        return make('tr', {}, row.map(function (cell, i) { return make('td', {'class': numeric[i] ? 'number' : '', text: f.label(cell === undefined ? '' : cell, 120)}); }));
      }))
    ])]);
  }
  Report.table_of = table_of;

  // Without what only a hand can use: sliders, legends by pages.
  function for_paper(option) {
    [].concat(option.dataZoom || []).forEach(function (zoom) { zoom.show = false; });
    [].concat(option.legend || []).forEach(function (legend) { Report.merge(legend, {type: 'plain', itemGap: 6, textStyle: {fontSize: 10}}); });
    return option;
  }
  function option_of(item) {
    var width = item.paper || item.element.clientWidth;
    item.narrow = item.state.narrow = width < 560;
    item.state.width = width;
    var option = Report.fit(Report.option_of(item.entry, Report.theme(dark), item.state), width);
    if (item.entry.figure.pans) {
      Report.for_panning(item, option);
    }
    return item.paper ? for_paper(option) : option;
  }
  function resize(item) {
    if (item.chart && !item.paper) {
      item.chart.resize();
      if (item.bar) {
        item.bar.resize();
      }
      if (item.narrow || item.element.clientWidth < 560 || item.entry.figure.by_width) {
        redraw(item);
      }
    }
  }
  function start(item) {
    if (item.chart || typeof echarts === 'undefined') {
      return;
    }
    var theme = Report.theme(dark);
    item.chart = echarts.init(item.element, null, {renderer: 'canvas'});
    if (item.names) {
      item.element.appendChild(item.names);
    }
    item.chart.setOption(option_of(item));
    if (item.bar_option) {
      Report.follow(item);
    }
    item.element.setAttribute('data-drawn', 'yes');
    item.drawn_ms = performance.now();
    if (Report.interactions[item.entry.figure.interactive]) {
      Report.interactions[item.entry.figure.interactive](item, theme);
    }
  }
  function redraw(item) {
    if (item.chart) {
      var zoom = (item.chart.getOption().dataZoom || []).map(function (z) { return {start: z.start, end: z.end}; });
      item.chart.setOption(option_of(item), true);
      if (item.bar) {
        item.bar.setOption(item.bar_option, true);
      }
      zoom.forEach(function (z, i) { item.chart.dispatchAction({type: 'dataZoom', dataZoomIndex: i, start: z.start, end: z.end}); });
    }
  }
  Report.redraw = redraw;

  // Drawn when they come near the window: a page of many figures opens at once.
  var observer = typeof IntersectionObserver === 'undefined' ? null : new IntersectionObserver(function (seen) {
    seen.forEach(function (one) {
      if (one.isIntersecting) {
        observer.unobserve(one.target);
        charts.forEach(function (item) { if (item.element === one.target) { start(item); } });
      }
    });
  }, {rootMargin: '300px'});

  function table_for(entry) {
    return Report.attempt(function () {
      return entry.figure.table ? entry.figure.table(entry.document) : Report.numbers_of(Report.option_of(entry, Report.theme(dark), {}));
    }, null);
  }
  function note_of(item) {
    var entry = item.entry;
    return entry.figure.note ? Report.attempt(function () { return entry.figure.note(entry.document, item.state); }, '') : '';
  }
  function fill_note(item) {
    item.note.textContent = note_of(item);
    item.note.hidden = !item.note.textContent;
  }
  Report.fill_note = fill_note;
  function fill_table(item) {
    if (item.details && item.details.open) {
      var table = table_for(item.entry);
      item.details.replaceChildren(item.details.firstChild, table_of(table || {head: [], rows: []}));
    }
  }
  function figure_of(entry) {
    var figure = entry.figure, id = 'figure-' + entry.name;
    var element = make('div', {'class': 'chart', role: 'img', tabindex: '0', 'aria-label': entry.title, id: id});
    var item = {entry: entry, element: element, chart: null, state: {}};
    if (typeof echarts === 'undefined') {
      element.hidden = true;
    }
    element.style.height = Report.height_of(figure, entry.document) + 'px';
    if (figure.pans) {
      item.legend = make('ul', {'class': 'legend', 'aria-label': 'colours'});
      item.bar_element = make('div', {'class': 'bar'});
      item.names = make('div', {'class': 'names'});
    }
    charts.push(item);
    item.note = make('p', {'class': 'note'});
    fill_note(item);
    item.tools = make('div', {'class': 'tools'});
    item.aside = make('div', {'class': 'aside', 'aria-live': 'polite'});
    // Those of thousands of bars are made when someone asks.
    var table = figure.many ? null : table_for(entry);
    if (figure.many || (table && table.rows.length)) {
      item.details = make('details', {}, [make('summary', {text: 'As a table'})]);
      item.details.addEventListener('toggle', function () {
        if (item.details.children.length === 1) {
          fill_table(item);
        }
      });
      item.details.open = typeof echarts === 'undefined' && !figure.many;
    }
    return make('figure', {'data-figure': entry.name}, [
      make('figcaption', {}, [make('h3', {text: entry.title}), item.tools]), item.legend, element, item.bar_element, item.aside, item.note, item.details
    ]);
  }
  // The figure with its new data.
  function refill(item) {
    var height = Report.height_of(item.entry.figure, item.entry.document) + 'px';
    fill_note(item);
    fill_table(item);
    if (item.element.style.height !== height) {
      item.element.style.height = height;
      if (item.chart) {
        item.chart.resize();
      }
    }
    redraw(item);
  }

  function headline() {
    return Report.cards().map(function (result) {
      var d = result.document;
      return make('div', {'class': 'result'}, [
        make('p', {'class': 'of', text: Report.document_name(d, 160) + (d.topology ? ' on ' + f.label(d.topology, 80) : '') + (d.engine ? ', ' + d.engine + ' engine' : '')}),
        make('div', {'class': 'cards'}, result.cards.map(function (card) {
          return make('div', {'class': 'card'}, [make('div', {'class': 'name', text: card[0]}), make('div', {'class': 'value', text: card[1]}), make('div', {'class': 'more', text: card[2]})]);
        })),
        d.slowest_workers && d.workers && d.workers.length ? make('p', {}, [make('button', {'class': 'main', id: 'show-slowest', text: 'Show the slowest worker: rank ' + Report.slowest_worker(d).rank, on: {click: function () { Report.show_worker(d, Report.slowest_worker(d), true); }}})]) : null,
        d.causes && d.causes.length ? make('ul', {'class': 'evidence'}, d.causes.map(function (c) { return make('li', {text: c.cause + ': ' + f.label(c.evidence, 400)}); })) : null
      ]);
    });
  }

  function inputs() {
    return Report.model.documents.map(function (d) {
      var rows = ['workload', 'grid', 'csv', 'topology', 'sliders', 'engine', 'semantics', 'flavour', 'trial_name', 'model', 'size', 'logs'].filter(function (k) { return typeof d[k] === 'string' && d[k] || Array.isArray(d[k]) && typeof d[k][0] === 'string'; })
        .map(function (k) { return [k, Array.isArray(d[k]) ? d[k].join(', ') : d[k]]; });
      return make('div', {'class': 'result'}, [
        make('p', {'class': 'of', text: Report.document_name(d, 160) + ' (' + f.label(d.schema, 40) + ')'}),
        d.command ? make('pre', {tabindex: '0'}, [make('code', {text: d.command})]) : make('p', {'class': 'note', text: 'The result does not say by which command it was made.'}),
        rows.length ? table_of({head: ['input', 'value'], rows: rows}) : null,
        d.warnings && d.warnings.length ? make('ul', {'class': 'evidence'}, d.warnings.slice(0, 50).map(function (w) { return make('li', {text: 'warning: ' + f.label(w, 400)}); })) : null
      ]);
    });
  }

  function set_theme(mode) {
    var system = window.matchMedia && window.matchMedia('(prefers-color-scheme: dark)').matches;
    var next = mode === 'dark' || (mode === 'auto' && system);
    document.documentElement.setAttribute('data-theme', next ? 'dark' : 'light');
    if (next !== dark) {
      dark = next;
      charts.forEach(redraw);
    }
  }

  function theme_button() {
    var modes = ['auto', 'light', 'dark'], at = 0;
    var button = make('button', {id: 'theme', 'aria-label': 'colours', text: 'Colours: auto'});
    button.addEventListener('click', function () {
      at = (at + 1) % modes.length;
      button.textContent = 'Colours: ' + modes[at];
      set_theme(modes[at]);
    });
    if (window.matchMedia) {
      window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', function () { set_theme(modes[at]); });
    }
    // Paper is white, shows all figures, and is narrower than a window.
    window.addEventListener('beforeprint', function () {
      set_theme('light');
      charts.forEach(function (item) {
        start(item);
        item.paper = kPaper;
        item.chart.resize({width: kPaper});
        redraw(item);
        item.chart.getZr().flush();
      });
    });
    window.addEventListener('afterprint', function () {
      charts.forEach(function (item) {
        item.paper = 0;
        item.chart.resize({width: 'auto'});
        redraw(item);
      });
      set_theme(modes[at]);
    });
    return button;
  }

  Report.charts = charts;

  // Of what is on the page: a section's own element, the figures' names and titles.
  var shown = {sections: {}, figures: ''}, nav, main;

  function parts_of(name, entries) {
    return name === 'headline' ? headline() : name === 'inputs' ? inputs()
      : entries.filter(function (e) { return e.figure.section === name; }).map(figure_of);
  }
  function build(entries) {
    var at = window.scrollY;
    charts.splice(0).forEach(function (item) {
      [item.chart, item.bar].forEach(function (chart) { if (chart) { chart.dispose(); } });
    });
    nav.textContent = main.textContent = '';
    shown.sections = {};
    kSections.forEach(function (section) {
      var parts = parts_of(section[0], entries);
      if (parts.length) {
        nav.appendChild(make('a', {href: '#' + section[0], text: section[1]}));
        shown.sections[section[0]] = make('section', {id: section[0], 'aria-labelledby': section[0] + '-title'}, [make('h2', {id: section[0] + '-title', text: section[1]})].concat(parts));
        main.appendChild(shown.sections[section[0]]);
      }
    });
    window.scrollTo(0, at);
    charts.forEach(function (item) {
      if (observer) {
        observer.observe(item.element);
      } else {
        start(item);
      }
    });
  }
  function retell(name) {
    var section = shown.sections[name];
    if (section) {
      section.replaceChildren.apply(section, [section.firstChild].concat(parts_of(name)));
    }
  }

  // Shows these documents. Figures that are there already get their new data and stay where they are.
  Report.show = function (data) {
    Report.load(data);
    var entries = Report.figures_now();
    var figures = entries.map(function (e) { return e.name + '\n' + e.title; }).join('\n');
    if (figures !== shown.figures || !main.firstChild) {
      build(entries);
    } else {
      charts.forEach(function (item) {
        item.entry = entries.filter(function (e) { return e.name === item.entry.name; })[0];
        refill(item);
      });
      retell('headline');
      retell('inputs');
    }
    shown.figures = figures;
    main.classList.remove('stale');
  };
  // New numbers of the first document alone: the headline and where the time goes; the rest is marked as of before.
  Report.show_numbers = function (numbers) {
    Object.assign(Report.model.documents[0], numbers);
    charts.filter(function (item) { return item.entry.name === 'time'; }).forEach(refill);
    retell('headline');
    main.classList.add('stale');
  };

  // The page's frame, with a panel below its head where one is given.
  Report.frame = function (title, panel) {
    set_theme('auto');
    nav = make('nav', {'aria-label': 'sections'});
    main = make('main', {id: 'report'});
    document.body.appendChild(make('header', {}, [make('h1', {text: title}), nav, theme_button()]));
    if (panel) {
      document.body.appendChild(panel);
    }
    document.body.appendChild(main);
    window.addEventListener('resize', function () { charts.forEach(resize); });
  };

  Report.open = function () {
    Report.frame('Lockstep report');
    Report.show(JSON.parse(document.getElementById('data').textContent));
    document.documentElement.setAttribute('data-ready', 'yes');
  };
})();
