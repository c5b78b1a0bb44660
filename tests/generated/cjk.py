"""Text in Chinese, Japanese and Korean."""

from types import MappingProxyType

from tests.generated.draw import Draw

_SENTENCES = MappingProxyType(
    {
        "zh": "请确认订单编号 {id} 的状态|系统在处理 {n} 条记录时超时，请稍后重试|该字段不能为空|用户反馈页面加载缓慢，尤其是在高峰时段|"
        "已将默认上限调整为 {n}|缓存已过期，正在重新加载数据|根据 {n} 份样本的统计，平均等待时间下降了百分之十二|保存失败：权限不足|"
        "本次更新修复了时区换算的错误|请勿修改自动生成的文件|导出完成，共 {n} 行|无法连接到 {id}，请检查网络设置",
        "ja": "注文番号 {id} の状況を確認してください|{n} 件のデータを処理中にタイムアウトしました|この項目は必須です|"
        "既定の上限を {n} に変更しました|キャッシュの有効期限が切れたため再読み込みします|保存できませんでした。権限を確認してください|"
        "タイムゾーンの変換に関する不具合を修正しました|自動生成されたファイルは編集しないでください|"
        "配送先の住所を変更したいのですが、まだ間に合いますか|返金の手続きはいつ完了しますか",
        "ko": "주문 번호 {id}의 상태를 확인해 주세요|{n}개의 기록을 처리하는 동안 시간이 초과되었습니다|필수 항목입니다|"
        "기본 한도를 {n}(으)로 변경했습니다|저장하지 못했습니다. 권한을 확인하세요|시간대 변환 오류를 수정했습니다|"
        "배송지를 변경할 수 있을까요|환불은 언제 처리되나요|내보내기가 완료되었습니다. 총 {n}행",
    }
)

LANGUAGES = tuple(_SENTENCES)


def sentence(draw: Draw, language: str, about: str = "") -> str:
    """Return one sentence, about the thing with that id if it can name one."""
    text = draw.one(_SENTENCES[language].split("|"))
    return text.format(
        id=about or f"{draw.hex(4).upper()}-{draw.between(100, 999)}", n=draw.between(12, 98_000)
    )
