//! Words that mean nearly the same where tools are described and asked for.
//!
//! Each line is one thing that tools do, or do it to, in the words that people have for it; the
//! commonest of them in other languages, too. A word may stand in several lines. Characters of
//! scripts without spaces stand in pairs, as [`super::words`] cuts them.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use super::words::words;

/// What tools do.
const DOING: &[&str] = &[
    "get fetch retrieve obtain gather collect acquire pull grab 获取 查看 取得 조회 abrufen holen obtener conseguir obtenir recuperer obter получить",
    "read open load view parse 读取 打开 读入 読む 열기 읽기 lesen leer abrir lire ouvrir ler прочитать открыть",
    "search find query lookup look discover locate seek explore 搜索 查询 查找 检索 検索 검색 찾기 suchen finden buscar encontrar chercher rechercher trouver procurar найти поиск",
    "create creation make generate build produce compose new draft construct 创建 生成 新建 制作 作成 생성 erstellen erzeugen anlegen crear generar creer generer criar gerar создать",
    "write save store export persist put 写入 保存 存储 导出 書く 저장 schreiben speichern escribir guardar ecrire enregistrer sauvegarder escrever salvar записать сохранить",
    "delete remove erase drop clear destroy purge unlink discard trash forget 删除 移除 清除 削除 삭제 loschen entfernen eliminar borrar supprimer effacer excluir удалить",
    "update edit modify change alter adjust revise patch 更新 修改 编辑 変更 編集 수정 andern bearbeiten actualizar cambiar modificar modifier atualizar alterar изменить",
    "set configure assign setting configuration option preference 设置 配置 設定 설정 einstellen configurar configurer настроить",
    "list enumerate show display browse all index 列表 列出 显示 一覧 목록 auflisten anzeigen listar mostrar lister afficher список показать",
    "add insert append attach include 添加 插入 追加 추가 hinzufugen agregar anadir ajouter adicionar добавить",
    "calculate compute evaluate math arithmetic calculation calculator mathematical sum formula expression percent percentage 计算 計算 계산 berechnen rechnen calcular calculer вычислить",
    "convert transform turn conversion transcode 转换 変換 변환 umwandeln konvertieren convertir converter преобразовать",
    "compare diff difference contrast comparison versus 比较 对比 差异 比較 비교 vergleichen comparar comparer сравнить",
    "send post publish submit deliver dispatch broadcast 发送 发布 提交 送信 전송 보내 senden veroffentlichen enviar publicar envoyer publier отправить",
    "download save fetch 下载 다운 herunterladen descargar telecharger baixar скачать",
    "upload import ingest 上传 导入 hochladen subir televerser загрузить",
    "run execute start launch invoke trigger perform 执行 运行 启动 実行 실행 ausfuhren starten ejecutar iniciar executer lancer executar запустить",
    "stop kill terminate cancel abort end halt quit close 停止 终止 取消 关闭 중지 취소 stoppen beenden detener cancelar arreter annuler parar остановить",
    "undo revert rollback restore reset discard 撤销 回滚 恢复 ruckgangig deshacer annuler",
    "create write new 写入",
    "restart reboot reload reset refresh renew 重启 刷新 再起動 neustarten reiniciar redemarrer",
    "analyze analysis inspect examine assess analytics evaluate investigate diagnose 分析 诊断 분석 analysieren untersuchen analizar analyser analisar анализ",
    "summarize summary overview abstract digest brief outline tldr 总结 摘要 概要 要約 요약 zusammenfassen zusammenfassung resumir resumen resumer resumo",
    "recommend suggest recommendation suggestion advice propose advise tip 推荐 建议 推薦 추천 empfehlen recomendar recommander рекомендовать",
    "draw plot render chart visualize paint graph diagram sketch illustrate figure 绘制 图表 画图 可视 グラフ 그리기 zeichnen diagramm dibujar grafico dessiner graphique desenhar",
    "merge combine join concatenate unite consolidate 合并 結合 병합 zusammenfuhren combinar unir fusionner combiner",
    "split divide separate partition chunk 拆分 分割 분할 teilen dividir separar diviser",
    "copy duplicate clone replicate 复制 拷贝 複製 복사 kopieren copiar copier",
    "move rename relocate transfer 移动 重命 이동 verschieben umbenennen mover renombrar deplacer renommer",
    "click press tap push hit 点击 클릭 klicken pulsar cliquer clicar",
    "fill type input enter typing form 填写 输入 入力 입력 ausfullen eingeben rellenar remplir preencher",
    "navigate goto visit browse go open 导航 访问 이동 navigieren besuchen navegar visitar naviguer",
    "check verify validate confirm ensure lint 检查 验证 確認 검증 확인 prufen uberprufen verificar comprobar validar verifier valider проверить",
    "test testing unittest spec qa 测试 テスト 테스트 testen probar tester",
    "watch monitor track follow observe 监控 跟踪 監視 모니터 uberwachen monitorear surveiller",
    "subscribe notify alert notification remind reminder 通知 提醒 알림 benachrichtigen notificar notifier recordar",
    "filter select choose pick 筛选 选择 選択 선택 filtern auswahlen filtrar seleccionar filtrer choisir",
    "sort order rank ranking arrange 排序 排名 정렬 sortieren ordenar trier classer",
    "count number total tally amount 数量 统计 개수 zahlen contar compter",
    "extract scrape parse crawl harvest fetch 提取 抓取 抽出 추출 extrahieren extraer extraire extrair",
    "translate translation language localize 翻译 翻訳 번역 ubersetzen traducir traduire traduzir перевод",
    "explain describe description define definition meaning 解释 说明 説明 설명 erklaren explicar expliquer",
    "plan planning strategy roadmap organize 计划 规划 計画 계획 planen planificar planifier planejar",
    "schedule arrange create add plan",
    "schedule book reserve reservation booking appointment 预订 预约 予約 예약 buchen reservar planifier",
    "pay charge payment checkout billing invoice 支付 付款 发票 결제 zahlen bezahlen rechnung pagar factura payer facture",
    "buy purchase shop shopping acquire 购买 购物 구매 kaufen einkaufen comprar acheter купить",
    "sell sale selling sold 销售 出售 판매 verkaufen vender vendre",
    "encrypt decrypt cipher hash encode decode 加密 解密 编码 verschlusseln cifrar chiffrer",
    "compress zip gzip gz archive unzip decompress tar 压缩 解压 komprimieren comprimir compresser",
    "deploy release publish rollout ship 部署 デプロイ 배포 bereitstellen desplegar deployer implantar",
    "install setup uninstall 安装 설치 installieren instalar installer",
    "connect login authenticate auth signin authorize 登录 连接 로그 anmelden verbinden conectar connecter",
    "approve accept confirm agree",
    "reject decline refuse deny dismiss",
    "approve accept reject review 批准 审核 승인 genehmigen aprobar approuver",
    "assign delegate owner assignee 分配 zuweisen asignar assigner",
    "comment reply respond answer response feedback 评论 回复 댓글 kommentieren comentar commenter",
    "ask question query prompt 提问 问题 질문 fragen preguntar demander",
    "think reason reasoning reflect brainstorm 思考 推理 denken pensar penser",
    "remember recall memory memorize knowledge observation fact 记忆 记住 기억 merken recordar memoriser",
    "resize crop scale rotate 缩放 裁剪",
    "play pause resume 播放 재생 abspielen reproducir jouer",
    "record capture screenshot snapshot 截图 录制 스크 aufnehmen captura capturer",
    "format prettify beautify style 格式 서식 formatieren formatear formater",
    "replace substitute swap 替换 置換 교체 ersetzen reemplazar remplacer",
    "optimize improve enhance tune 优化 改善 optimieren optimizar optimiser",
    "predict forecast estimate projection 预测 預測 예측 vorhersage predecir prevoir",
    "simulate simulation model 模拟 simulieren simular simuler",
    "measure metric benchmark statistics statistic stats 指标 统计 통계 messen medir mesurer",
];

/// What they do it to.
const THINGS: &[&str] = &[
    "file document path 文件 文档 파일 ファイル datei dokument archivo fichero fichier arquivo файл",
    "directory folder dir 目录 フォルダ 폴더 ordner verzeichnis carpeta directorio dossier repertoire pasta папка",
    "image picture photo photograph png jpeg jpg gif svg img 图片 图像 照片 画像 이미지 사진 bild foto imagen imagem изображение",
    "website webpage page site web internet online url html http 网页 网站 页面 ウェブ webseite seite pagina sitio site сайт",
    "dialog popup modal alert window",
    "link url hyperlink href 链接 リンク 링크 enlace lien",
    "browser tab webpage page 浏览 ブラウザ navegador navigateur",
    "button element selector component widget 按钮 元素 组件 ボタン 버튼 schaltflache boton bouton",
    "price cost quote value pricing fee rate 价格 费用 価格 가격 preis kosten precio coste prix cout preco цена",
    "stock share equity ticker security 股票 株価 주식 aktie accion action acao",
    "crypto cryptocurrency bitcoin btc ethereum eth coin token blockchain 加密 币价 kryptowahrung",
    "currency money exchange forex dollar euro 货币 汇率 通貨 환율 wahrung geld moneda divisa devise monnaie moeda валюта",
    "presentation powerpoint ppt pptx slide deck slideshow keynote 幻灯 演示 スライド 발표 prasentation folie presentacion diapositiva",
    "spreadsheet excel xlsx xls sheet workbook worksheet csv 表格 シート tabelle hoja tableur planilha таблица",
    "schema structure column field describe",
    "cell row column range 单元 zelle celda cellule",
    "word docx doc document",
    "pdf acrobat",
    "paragraph text sentence 段落 absatz parrafo paragraphe",
    "heading title header headline 标题 タイトル uberschrift titulo titre",
    "text content body string plaintext 文本 内容 テキスト 텍스트 inhalt texto contenido contenu conteudo",
    "video clip movie film recording 视频 电影 動画 映画 영상 영화 pelicula",
    "audio sound music song wav mp3 track melody 音频 音乐 音楽 음악 musik cancion musique",
    "subtitle transcript caption transcription 字幕 转录 자막 untertitel subtitulo",
    "paper article publication preprint literature research journal scientific academic scholarly 论文 文章 文献 論文 논문 artikel articulo",
    "study trial experiment research 研究 试验 연구 studie estudio etude",
    "news headline story press article 新闻 资讯 头条 ニュース 뉴스 nachrichten noticia actualite новости",
    "trend trending popular hot top rank ranking hottest best bestseller 趋势 热门 热榜 排行 人気 인기 beliebt tendencia populaire",
    "weather forecast temperature climate rain humidity wind 天气 气温 气象 天気 날씨 wetter clima tiempo meteo погода",
    "location place address geographic coordinate geocode latitude longitude geolocation 位置 地点 地址 坐标 場所 住所 위치 주소 ort adresse ubicacion direccion lugar lieu endereco место адрес",
    "elevation altitude height high level 海拔 高度 hohe altura",
    "map geographic geospatial cartography 地图 マップ 지도 karte mapa carte карта",
    "nearby near surrounding radius around vicinity distance far away 附近 周边 距离 近く 주변 nahe entfernung weit cerca distancia",
    "route direction itinerary path journey drive driving walk 路线 経路 경로 route ruta itineraire rota маршрут",
    "travel trip tour tourism vacation holiday 旅行 旅游 여행 reise viaje voyage viagem",
    "hotel accommodation lodging rental apartment hostel listing 酒店 住宿 ホテル 호텔 unterkunft alojamiento hebergement",
    "flight airplane airline airport plane 航班 机票 飛行 항공 flug vuelo",
    "train railway rail station 火车 列车 车站 電車 기차 zug bahn tren",
    "bus transit metro subway commute transport 公交 地铁 交通 버스",
    "car vehicle driving parking automobile 汽车 停车 자동 auto fahrzeug coche voiture carro",
    "ticket fare seat 车票 门票 余票 チケット 티켓 fahrkarte boleto billet",
    "dish recipe meal food cook cooking cuisine menu ingredient eat dinner lunch restaurant 菜谱 菜品 食材 美食 料理 レシピ 요리 음식 rezept essen receta comida cocina recette cuisine receita",
    "user account member person people profile customer contact 用户 账户 人员 ユーザ 사용 benutzer konto usuario cuenta utilisateur compte пользователь",
    "team group organization department 团队 组织 チーム 팀 gruppe equipo grupo equipe groupe",
    "role permission access privilege acl 权限 角色 권한 berechtigung permiso autorisation",
    "message chat conversation channel thread dm 消息 聊天 メッセージ 메시 채팅 nachricht mensaje conversation mensagem сообщение",
    "email mail inbox mailbox smtp 邮件 邮箱 メール 메일 correo courriel почта",
    "phone call sms telephone 电话 短信 電話 전화 telefon llamada appel",
    "repository repo codebase 仓库 リポジトリ 저장소 repositorio depot",
    "issue bug ticket defect incident 问题 缺陷 工单 バグ fehler incidencia probleme",
    "pull request merge pr review",
    "commit revision changeset history log 提交 历史 コミット 커밋 verlauf historial historique",
    "branch checkout tag fork 分支 ブランチ 브랜치 zweig rama branche",
    "code script program source function snippet 代码 脚本 程序 コード 코드 programm codigo programa",
    "database db sql table postgres mysql sqlite schema query 数据 据库 データベース 데이터 datenbank datos donnees",
    "record row entry item document 记录 条目 レコード eintrag registro enregistrement",
    "dataset data corpus collection 数据 데이터 datensatz conjunto",
    "container docker pod image kubernetes k8s cluster 容器 コンテナ 컨테 contenedor conteneur",
    "server host machine instance vm node 服务 主机 サーバ 서버 servidor serveur",
    "cloud aws azure gcp bucket storage s3 云端 存储 クラウド",
    "process task job pid 进程 プロセス 프로 prozess proceso processus",
    "command terminal shell console bash cli 命令 终端 コマンド 명령 befehl comando commande",
    "log logs trace event console 日志 ログ 로그 protokoll registro journal",
    "error exception failure crash bug 错误 异常 エラー 오류 fehler erreur erro ошибка",
    "dependency package library module 依赖 软件 パッケージ paket paquete dependance",
    "version release latest newest 版本 バージョン 버전",
    "vulnerability security exploit cve 漏洞 安全 보안 sicherheit seguridad securite",
    "documentation docs doc manual reference guide tutorial 文档 教程 手册 ドキュメント dokumentation documentacion",
    "api endpoint request http rest webhook 接口 请求 リクエスト",
    "domain dns hostname 域名 ドメイン",
    "ip network address traffic port 网络 ネットワーク netzwerk reseau",
    "time date clock today now timezone hour day current 时间 日期 今天 時間 日付 시간 날짜 오늘 zeit datum fecha hora heure data время дата",
    "calendar event meeting schedule agenda appointment 日历 日程 会议 予定 カレンダー 일정 회의 kalender termin besprechung calendario evento reunion calendrier evenement встреча",
    "task todo checklist assignment 任务 待办 タスク 할일 작업 aufgabe tarea tache tarefa задача",
    "project milestone sprint epic board 项目 プロジェクト 프로 projekt proyecto projet projeto проект",
    "note memo notebook jot 笔记 备忘 メモ 노트 notiz nota заметка",
    "bookmark favorite saved star 收藏 书签 lesezeichen favorito favori",
    "book novel library author 图书 书籍 本書 도서 buch libro livre livro книга",
    "wiki encyclopedia knowledge article 百科",
    "entity relation graph node knowledge triple 实体 关系 知识",
    "random dice lottery shuffle chance draw 随机 抽奖 무작 zufall aleatorio aleatoire",
    "number integer float numeric digit 数字 整数 숫자 zahl numero nombre",
    "company business corporation firm enterprise 公司 企业 商业 会社 기업 회사 unternehmen firma empresa entreprise компания",
    "financial finance economic economy market investment invest trading 财经 金融 经济 市场 投资 経済 금융 경제 finanzen wirtschaft finanzas economia mercado marche finances",
    "earnings income revenue statement balance cashflow profit fundamental dividend 财报 收入 利润 재무 umsatz ingreso revenu",
    "bank transaction transfer ledger 银行 交易 은행 uberweisung transaccion",
    "order cart shipment delivery tracking 订单 物流 注文 주문 bestellung pedido commande",
    "product goods item commodity merchandise catalog 商品 产品 製品 상품 제품 produkt producto produit produto",
    "customer client lead deal crm 客户 顧客 고객 kunde cliente",
    "review rating score feedback opinion 评价 评分 评论 レビュー 리뷰 bewertung resena avis",
    "report statement summary 报告 报表 レポート 보고 bericht informe rapport relatorio отчет",
    "information info detail data facts 信息 详情 详细 情報 정보 information daten informacion detalle detalles renseignement informacao данные",
    "technology tech digital gadget electronics device 科技 技术 数码 技術 기술 technik tecnologia technologie",
    "consumer shopping deal discount coupon bargain 消费 优惠 折扣 할인 angebot oferta",
    "game gaming play player match 游戏 比赛 ゲーム 게임 spiel juego jeu jogo игра",
    "character avatar hero 角色 英雄 캐릭",
    "card deck hand 卡牌 卡片 カード 카드 karte carta carte",
    "sport football soccer league team athlete 体育 足球 スポーツ 스포 deporte",
    "science physics chemistry biology 科学",
    "treatment therapy drug medicine medical clinical medication pharmaceutical 治疗 药物 医疗 医療 의료 behandlung medikament tratamiento traitement",
    "disease cancer tumor oncology illness condition symptom diagnosis 疾病 癌症 질병 krankheit enfermedad maladie",
    "health fitness wellness exercise 健康 건강 gesundheit salud sante",
    "gene genetic variant mutation genome genomic dna protein 基因 变异 유전",
    "patient hospital doctor physician 患者 医院 환자 arzt paciente medecin",
    "law legal regulation contract compliance 法律 合同 법률 gesetz recht ley contrato loi",
    "government public official policy 政府 정부 regierung gobierno gouvernement",
    "school university education course student learning 学校 教育 课程 학교 교육 schule escuela ecole",
    "job career hiring vacancy recruitment resume cv 招聘 职位 채용 stelle empleo emploi",
    "component ui interface widget frontend 组件 界面",
    "flowchart diagram uml mindmap 导图 流程",
    "recognition detection vision ocr 识别 인식",
    "art artwork painting museum gallery exhibition 艺术 博物 美術 미술 kunst arte",
    "color theme palette font style 颜色 主题 字体 色彩 farbe couleur",
    "reaction emoji like thumb upvote",
    "icon symbol logo emoji 图标 アイコン",
    "design layout template mockup 设计 布局 模板 デザイン 디자 entwurf diseno plantilla modele",
    "markdown md readme",
    "json xml yaml toml",
    "language locale country translation 语言 语种 言語 언어 sprache idioma langue",
    "country region city state province town 国家 城市 地区 都市 도시 stadt pais ciudad pays ville",
    "latest newest recent current fresh today 最新 最近 최신 neueste reciente recent",
    "history historical past archive 历史 過去 기록 geschichte historico historique",
    "model llm ai prompt completion gpt 模型 人工 モデル",
    "embedding vector semantic similarity 向量 语义",
    "key secret token password credential 密钥 密码 パスワード 비밀 passwort schlussel contrasena",
    "metadata attribute property exif tag 元数 属性",
    "property house realestate estate home housing neighborhood 房产 住宅 부동 immobilien vivienda immobilier",
    "energy power electricity battery 能源 电力 에너",
    "environment air quality pollution 环境 空气 환경",
    "advertisement ad campaign marketing 广告 营销 광고 werbung anuncio publicite",
    "social media post tweet feed timeline 社交 微博 소셜",
];

/// Words that say little of what a tool is for, because most tools have them.
const GENERIC: &str = "get fetch retrieve list show find search query create make generate build add \
    update set information info detail data text content name file value type number id new provide \
    return result specific given multiple put take latest current recent include tool support various optional default parameter";

/// Words of a query that say nothing about tools.
const SILENT: &str = "a an the of to in on at for from by with and or as is are was were be been being \
    it its this that these those i me my mine we us our you your he him she her they them their his \
    which who whom whose what when where how why there here please can could would should will \
    shall may might must do does did done doing have has had having want wants wanted need needs needed \
    just also if then than so such into onto about over under between within during any all each \
    some both either more most other another only own same not no nor but up out off too very s t ll re \
    ve d m using use used uses via let lets tell give gives show able way thing things \
    someone something der das den dem ein eine einen einer und oder ist sind mit von zu zum zur im \
    el la los las un una unos unas y o es son con de del para por en que le les des du au aux et est \
    sont avec pour par dans sur une um uma e do da dos das em";

/// What words mean, by their stems.
#[derive(Debug, Default)]
pub(super) struct Concepts {
    related: HashMap<String, Vec<String>>,
    generic: HashSet<String>,
    silent: HashSet<String>,
}

impl Concepts {
    /// The tables, made ready when they are first needed.
    pub(super) fn get() -> &'static Self {
        static CONCEPTS: OnceLock<Concepts> = OnceLock::new();
        CONCEPTS.get_or_init(Self::new)
    }

    fn new() -> Self {
        let mut concepts = Self::default();
        for line in DOING.iter().chain(THINGS) {
            let mut members: Vec<String> = Vec::new();
            words(line, |word| {
                if !members.iter().any(|member| member == word) {
                    members.push(word.to_owned());
                }
            });
            for one in &members {
                let related = concepts.related.entry(one.clone()).or_default();
                for other in &members {
                    if other != one && !related.contains(other) {
                        related.push(other.clone());
                    }
                }
            }
        }
        words(GENERIC, |word| {
            concepts.generic.insert(word.to_owned());
        });
        for word in SILENT.split_whitespace() {
            concepts.silent.insert(word.to_owned());
            words(word, |word| {
                concepts.silent.insert(word.to_owned());
            });
        }
        concepts
    }

    /// The stems of words that mean nearly the same, in the order of the tables.
    pub(super) fn related(&self, stem: &str) -> &[String] {
        self.related.get(stem).map_or(&[], Vec::as_slice)
    }

    /// Whether the tables know the word.
    pub(super) fn knows(&self, stem: &str) -> bool {
        self.related.contains_key(stem) || self.is_silent(stem)
    }

    /// All words that mean something, in no order.
    pub(super) fn known(&self) -> impl Iterator<Item = &str> {
        self.related.keys().map(String::as_str)
    }

    /// Whether a word says little, because most tools have it.
    pub(super) fn is_generic(&self, stem: &str) -> bool {
        self.generic.contains(stem)
    }

    /// Whether a word of a query says nothing about tools.
    pub(super) fn is_silent(&self, stem: &str) -> bool {
        self.silent.contains(stem)
    }
}
